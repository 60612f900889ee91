#include "cli/report.h"

#include "base/json_out.h"
#include "cli/escape.h"

/* What a script compares. SLU_EDOWN is also a server that does not answer. */
static const char *
name_of(int code)
{
	return code == SLU_EDOWN ? "unavailable" : slu_err_row(code)->flat_name;
}

static void
write_json(struct buf *out, int code, int exit, const char *text)
{
	struct json_out w;

	json_out_init(&w, out);
	json_out_object(&w, NULL);
	if (code) {
		json_out_str(&w, "error", slice_of(name_of(code)));
		json_out_str(&w, "message", slice_of(text));
		json_out_i64(&w, "exit", exit);
	} else {
		json_out_str(&w, "note", slice_of(text));
	}
	json_out_close(&w);
	json_out_end(&w);
}

/* One write: threads report, too. */
int
cli_report(const char *command, bool json, int code, int exit, const char *text)
{
	struct buf shown, line;

	buf_init(&shown, SIZE_MAX);
	buf_init(&line, SIZE_MAX);
	escape_put(&shown, slice_of(text), true);
	if (json)
		write_json(&line, code, exit, buf_str(&shown));
	else
		buf_printf(&line, "sluice%s%s: %s", *command ? " " : "", command, buf_str(&shown));
	fprintf(stderr, "%s\n", buf_str(&line));
	buf_release(&line);
	buf_release(&shown);
	return exit;
}
