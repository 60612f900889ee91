/*
 * export.c - `sluice queue export`: prints queues and their knobs as a file for `queue apply`.
 *
 *      shop:
 *        orders:
 *          lease: 30s
 *          retry:
 *            base: 1s
 */
#include "cli/lib/knobs.h"
#include "cli/lib/json_line.h"
#include "cli/lib/session.h"

#include "base/json/json_table.h"
#include "base/mem.h"

#include <stdlib.h>
#include <strings.h>

struct name {
	char space[132], queue[132]; /* as the user wrote them */
};

struct queue_names {
	struct name *rows;
	unsigned n, size;
};

/* --- which queues ------------------------------------------------------------- */

static int
add_name(void *arg, struct json *in, struct slu_err *err)
{
	static const struct json_field fields[] = {
		JSON_ROW("display_namespace", json_read_chars, struct name, space),
		JSON_ROW("display_topic", json_read_chars, struct name, queue),
	};
	struct queue_names *const all = arg;
	struct name row = { 0 };
	struct name *more;

	json_fields(in, fields, COUNT(fields), JSON_LENIENT, &row);
	more = all->n < all->size ? all->rows : mem_realloc(all->rows, (2 * all->size + 64) * sizeof *more);
	if (!more)
		return slu_fail(err, SLU_ENOMEM, "no memory for names of queues");
	if (all->n == all->size)
		all->size = 2 * all->size + 64;
	all->rows = more;
	more[all->n++] = row;
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct name *const x = a, *const y = b;
	const int space = strcasecmp(x->space, y->space);

	return space ? space : strcasecmp(x->queue, y->queue);
}

static int
list(struct session *s, bool all, struct queue_names *out, struct slu_err *err)
{
	const struct query_list list = { "/v1/admin/queues", all ? NULL : s->space, "queues", 0, NULL };
	const int rc = query_each(&s->query, &list, add_name, out, err);

	missing_warn(&s->query.missing, s);
	if (!rc && out->n)
		qsort(out->rows, out->n, sizeof *out->rows, by_name);
	return rc;
}

/* --- as a file ---------------------------------------------------------------- */

/* Quotes a name that YAML could read as another type. */
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
	struct json_line l;
	struct json_out *const w = json_line_begin(&l);

	json_out_str(w, "namespace", slice_of(name->space));
	json_out_str(w, "queue", slice_of(name->queue));
	json_out_raw(w, "policy", query_value(policy));
	json_line_end(&l, stdout);
}

static int
print_queue(struct session *s, const struct name *name, const struct name *before,
	    struct slu_err *err)
{
	struct knobs knobs;
	struct slice policy;
	char text[160];
	int rc;

	query_queue(&s->query, "/v1/admin/queue/policy", name->space, name->queue);
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

struct choice {
	struct session s;
	bool all;
};

static int
run(struct session *s, struct slu_err *err)
{
	const bool all = ((struct choice *)s)->all;
	struct queue_names names = { 0 };
	int rc = list(s, all, &names, err);

	for (unsigned i = 0; i < names.n && !rc; i++)
		if (i == 0 || by_name(&names.rows[i - 1], &names.rows[i]) != 0)
			rc = print_queue(s, &names.rows[i], i ? &names.rows[i - 1] : NULL, err);
	if (!rc && names.n == 0)
		session_note(s, all ? "no queues yet" : "no queues in namespace %s yet", s->space);
	mem_free(names.rows);
	return rc;
}

const struct command cli_queue_export = {
	.name = "queue export",
	.summary = "print queues and knobs as a file for apply",
	.usage = "[options]",
	.text = "Prints the queues of a namespace, or of all namespaces, with their knobs, as a YAML\n"
		"file for `sluice queue apply`. With --json a line for each queue.\n",
	.examples = "  sluice queue export > queues.yaml\n"
		    "  sluice queue export --all --server old:7171 > all.yaml\n",
	.options = CLI_QUEUE,
	CLI_ARGS({ "-a, --all", ARG_FLAG, AT(choice, all), "all namespaces" }),
	.size = sizeof(struct choice),
	.run = run,
};
