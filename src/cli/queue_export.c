/*
 * queue_export.c - `sluice queue export`: queues and their knobs, as a file that
 * `queue apply` takes.
 *
 *      shop:
 *        orders:
 *          lease: 30s
 *          retry:
 *            base: 1s
 */
#include "cli/knobs.h"
#include "cli/session.h"

#include "base/json_out.h"
#include "base/json_table.h"
#include "base/mem.h"

#include <stdlib.h>
#include <strings.h>

struct name {
	char space[132], queue[132]; /* as they are shown */
};

struct names {
	struct name *rows;
	unsigned n, size;
};

/* --- which queues ------------------------------------------------------------- */

struct row {
	struct slice display_namespace, display_topic;
};

static int
add_name(struct names *all, const struct row *row, struct slu_err *err)
{
	struct name *const more = all->n < all->size
					  ? all->rows
					  : mem_realloc(all->rows, (2 * all->size + 64) * sizeof *more);

	if (!more)
		return slu_fail(err, SLU_ENOMEM, "no memory for the names of queues");
	if (all->n == all->size)
		all->size = 2 * all->size + 64;
	all->rows = more;
	(void)snprintf(more[all->n].space, sizeof more->space, "%.*s",
		       (int)row->display_namespace.n, row->display_namespace.p);
	(void)snprintf(more[all->n].queue, sizeof more->queue, "%.*s", (int)row->display_topic.n,
		       row->display_topic.p);
	all->n++;
	return 0;
}

static int
take_page(struct names *all, struct slice page, char cursor[static 32], struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_FIELD(text, struct row, display_namespace),
		JSON_FIELD(text, struct row, display_topic),
	};
	struct json_str name;
	struct json r;
	int rc = 0;

	cursor[0] = '\0';
	json_init(&r, page, JSON_DEPTH);
	json_object(&r);
	while (json_member(&r, &name)) {
		if (json_str_is(&name, SLICE("cursor"))) {
			const struct slice text = json_text(&r);

			(void)snprintf(cursor, 32, "%.*s", (int)text.n, text.p);
			continue;
		}
		if (!json_str_is(&name, SLICE("queues"))) {
			(void)json_skip(&r);
			continue;
		}
		json_array(&r);
		while (json_element(&r)) {
			struct row row = { 0 };

			json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &row);
			if (!rc)
				rc = add_name(all, &row, err);
		}
	}
	return rc ? rc : json_end(&r, err) ? SLU_EUNKNOWN
					   : 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct name *const x = a, *const y = b;
	const int space = strcasecmp(x->space, y->space);

	return space ? space : strcasecmp(x->queue, y->queue);
}

static int
list(struct session *s, bool all, struct names *out, struct slu_err *err)
{
	char cursor[32] = "";
	struct slice page;
	int rc;

	do {
		query_path(&s->query, "/v1/admin/queues");
		query_param(&s->query, "namespace", all ? NULL : s->space);
		query_param(&s->query, "limit", "1000");
		query_param(&s->query, "cursor", cursor[0] ? cursor : NULL);
		rc = query_get(&s->query, &page, err);
		if (!rc)
			rc = take_page(out, page, cursor, err);
	} while (!rc && cursor[0]);
	if (!rc && out->n)
		qsort(out->rows, out->n, sizeof *out->rows, by_name);
	return rc;
}

/* --- as a file ---------------------------------------------------------------- */

/* A name that YAML may take for something else is quoted. */
static const char *
quoted(const char *name, char out[static 160])
{
	static const char *const words[] = { "true", "false", "null", "yes", "no", "on", "off", "y", "n" };
	bool plain = (name[0] | 0x20) >= 'a' && (name[0] | 0x20) <= 'z';

	for (size_t i = 0; i < COUNT(words); i++)
		plain &= strcasecmp(name, words[i]) != 0;
	(void)snprintf(out, 160, plain ? "%s" : "\"%s\"", name);
	return out;
}

static void
print_knobs(const struct knobs *k)
{
	const char *group = "";

	for (unsigned i = 0; i < k->n; i++) {
		const char *const name = k->rows[i].name, *const dot = strchr(name, '.');
		const struct slice value = knob_text(k->rows[i].value);
		const int n = dot ? (int)(dot - name) : 0;

		if (dot && strncmp(group, name, (size_t)n + 1) != 0)
			printf("    %.*s:\n", n, name);
		group = dot ? name : "";
		printf("%s%s: %.*s\n", dot ? "      " : "    ", dot ? dot + 1 : name, (int)value.n,
		       value.p);
	}
}

static void
print_json(const struct name *name, struct slice policy)
{
	struct json_out w;
	struct buf line;

	buf_init(&line, SIZE_MAX);
	json_out_init(&w, &line);
	json_out_object(&w, NULL);
	json_out_str(&w, "namespace", slice_of(name->space));
	json_out_str(&w, "queue", slice_of(name->queue));
	json_out_raw(&w, "policy", query_value(policy));
	json_out_close(&w);
	printf("%s\n", buf_str(&line));
	buf_release(&line);
}

static int
print_queue(struct session *s, const struct name *name, const struct name *before,
	    struct slu_err *err)
{
	struct knobs knobs;
	struct slice policy;
	char text[160];
	int rc;

	query_path(&s->query, "/v1/admin/queue/policy");
	query_param(&s->query, "namespace", name->space);
	query_param(&s->query, "topic", name->queue);
	rc = query_get(&s->query, &policy, err);
	if (!rc)
		rc = knobs_read(&knobs, policy, NULL, err);
	if (rc)
		return rc;
	if (s->json) {
		print_json(name, policy);
		return 0;
	}
	if (!before || strcasecmp(before->space, name->space) != 0)
		printf("%s:\n", quoted(name->space, text));
	printf("  %s:\n", quoted(name->queue, text));
	print_knobs(&knobs);
	return 0;
}

int
cli_queue_export(int argc, char **argv)
{
	static const struct session_help help = {
		.usage = "queue export [options]",
		.text = "Print the queues of a namespace, or of all, with their knobs, as YAML: a file\n"
			"that `sluice queue apply` takes. With --json a line for each queue.\n",
		.examples = "  sluice queue export > queues.yaml\n"
			    "  sluice queue export --all --server old:7171 > all.yaml\n",
	};
	struct session s = SESSION("queue export");
	bool all = false;
	const struct arg args[] = {
		{ "-a, --all", ARG_FLAG, &all, "of all namespaces" },
		SESSION_ROWS(&s),
	};
	struct names names = { 0 };
	struct slu_err err;
	int rc;

	if (!session_begin(&s, &help, &argc, &argv, args, COUNT(args)))
		return s.exit;
	rc = list(&s, all, &names, &err);
	for (unsigned i = 0; i < names.n && !rc; i++)
		if (i == 0 || by_name(&names.rows[i - 1], &names.rows[i]) != 0)
			rc = print_queue(&s, &names.rows[i], i ? &names.rows[i - 1] : NULL, &err);
	if (rc)
		session_fail(&s, &err);
	else if (names.n == 0)
		session_note(&s, all ? "no queues yet" : "no queues in namespace %s yet", s.space);
	mem_free(names.rows);
	return session_end(&s);
}
