/*
 * client_state.c - the JSON document of a key: what the holder of its lock puts is seen by
 * others once it is committed. slu_json_decode reads it into a struct.
 */
#include <sluice/client.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
	char colour[16];
	int64_t size;
	bool dark;
};

static const struct slu_json_field fields[] = {
	SLU_JSON_FIELD(struct settings, colour, SLU_JSON_TEXT),
	SLU_JSON_FIELD(struct settings, size, SLU_JSON_INT),
	SLU_JSON_FIELD(struct settings, dark, SLU_JSON_BOOL),
};

static int
show(const struct slu_state *s, struct slu_err *err)
{
	struct settings v = { .colour = "white" }; /* what the document does not say stays */
	int rc = 0;

	if (s->text)
		rc = slu_json_decode(s->text, s->size, fields, 3, &v, err);
	if (!rc)
		printf("version %" PRId64 ": %s, size %" PRId64 "\n", s->version, v.colour, v.size);
	return rc;
}

/* As everybody sees it. */
static int
peek(struct slu_client *c, struct slu_err *err)
{
	struct slu_state s;
	int rc = slu_state_peek(c, "example/settings", &s, NULL, err);

	if (!rc)
		rc = show(&s, err);
	slu_free(s.text);
	return rc;
}

/* As the holder does; changed only if it is still what we have seen. */
static int
change(struct slu_client *c, struct slu_lease *lease, struct slu_err *err)
{
	static const char text[] = "{\"colour\":\"green\",\"size\":12}";
	struct slu_state s;
	struct slu_state_if same = { SLU_OPTIONS_INIT(struct slu_state_if), .has_version = true };
	int rc = slu_state_get(c, lease, &s, NULL, err);

	if (rc)
		return rc;
	slu_free(s.text);
	same.version = s.version;
	return slu_state_put(c, lease, text, strlen(text), &same, NULL, err);
}

int
main(void)
{
	const struct slu_client_config config = { SLU_OPTIONS_INIT(struct slu_client_config), .servers = getenv("SLUICE_SERVER") };
	const struct slu_acquire what = { SLU_OPTIONS_INIT(struct slu_acquire), .key = "example/settings", .wait = SLU_MIN };
	struct slu_lease lease;
	struct slu_client *c;
	struct slu_err err;
	int rc = slu_client_new(&c, &config, &err);

	for (int i = 0; i < 2 && !rc; i++) { /* set it, then remove it */
		rc = slu_lock_acquire(c, &what, &lease, NULL, &err);
		if (!rc)
			rc = i == 0 ? change(c, &lease, &err) : slu_state_remove(c, &lease, NULL, NULL, &err);
		if (!rc)
			rc = slu_lock_release(c, &lease, SLU_COMMIT, NULL, &err);
		if (!rc)
			rc = peek(c, &err);
	}
	slu_client_free(c);
	if (rc)
		fprintf(stderr, "%s\n", err.text);
	return rc ? 1 : 0;
}
