#include "cli/lib/json_line.h"

struct json_out *
json_line_begin(struct json_line *l)
{
	buf_init(&l->text, SIZE_MAX);
	json_out_open(&l->w, &l->text);
	return &l->w;
}

void
json_line_end(struct json_line *l, FILE *out)
{
	json_out_finish(&l->w);
	fprintf(out, "%s\n", buf_str(&l->text));
	buf_release(&l->text);
}
