#include "cli/lib/report.h"

#include "base/json/json_out.h"
#include "cli/lib/escape.h"

/* The name that scripts compare. SLU_EDOWN also means that the server does not answer. */
static const char *
name_of(int code)
{
	return code == SLU_EDOWN ? "unavailable" : slu_err_row(code)->flat_name;
}

/* The libraries name members of their structs. The command line names options instead. */
static const struct {
	const char *library, *here;
} words[] = {
	{ "set ca_file to the CA that signed it", "pass the CA that signed it with --ca-file FILE or SLUICE_CA_FILE" },
	{ "set cert and cert_key", "pass one with --cert FILE and --cert-key FILE, or SLUICE_CERT and SLUICE_CERT_KEY" },
	{ "is cert the right one?", "is it the right one for --cert?" },
	{ "start one with `sluiced`, or set servers to another", "start one with `sluiced` or `make run`, or name another (--server)" },
	{ "set servers to another", "name another server (--server)" },
	{ "set token to one that `sluice token` made", "set SLUICE_TOKEN or use --token-file (`sluice token` makes a token)" },
};

static void
translate(struct buf *out, const char *text)
{
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		const char *const at = strstr(text, words[i].library);

		if (at) {
			buf_put(out, text, (size_t)(at - text));
			buf_puts(out, words[i].here);
			text = at + strlen(words[i].library);
			break;
		}
	}
	buf_puts(out, text);
}

static void
write_json(struct buf *out, int code, int exit, const char *text)
{
	struct json_out w;

	json_out_open(&w, out);
	if (code) {
		json_out_str(&w, "error", slice_of(name_of(code)));
		json_out_str(&w, "message", slice_of(text));
		json_out_i64(&w, "exit", exit);
	} else {
		json_out_str(&w, "note", slice_of(text));
	}
	json_out_finish(&w);
}

/* One write: other threads report too. */
int
cli_report(const char *command, bool json, int code, int exit, const char *text)
{
	struct buf shown, line, own;

	buf_init(&shown, SIZE_MAX);
	buf_init(&line, SIZE_MAX);
	buf_init(&own, SIZE_MAX);
	translate(&own, text);
	escape_put(&shown, buf_slice(&own), true);
	if (json)
		write_json(&line, code, exit, buf_str(&shown));
	else
		buf_printf(&line, "sluice%s%s: %s", *command ? " " : "", command, buf_str(&shown));
	fprintf(stderr, "%s\n", buf_str(&line));
	buf_release(&line);
	buf_release(&shown);
	buf_release(&own);
	return exit;
}
