#include "api/sqs/out.h"

#include "api/sqs/sqs.h"

#include <inttypes.h>
#include <stdio.h>

static const char json_type[] = "application/x-amz-json-1.0";
static const char xml_type[] = "text/xml";

void
sqs_out_escape(struct buf *b, struct slice text)
{
	const char *from = text.p;

	for (size_t i = 0; i < text.n; i++) {
		const char c = text.p[i];
		const char *const to = c == '&'    ? "&amp;"
				       : c == '<'  ? "&lt;"
				       : c == '>'  ? "&gt;"
				       : c == '"'  ? "&quot;"
				       : c == '\r' ? "&#xD;"
						   : NULL;

		if (!to)
			continue;
		buf_put(b, from, (size_t)(text.p + i - from));
		buf_puts(b, to);
		from = text.p + i + 1;
	}
	buf_put(b, from, (size_t)(text.p + text.n - from));
}

static void
tag(struct buf *b, const char *before, const char *name, const char *after)
{
	buf_puts(b, before);
	buf_puts(b, name);
	buf_puts(b, after);
}

static void
xml_text(struct buf *b, const char *name, struct slice text)
{
	tag(b, "<", name, ">");
	sqs_out_escape(b, text);
	tag(b, "</", name, ">");
}

void
sqs_out_resume(struct sqs_out *o, struct apicall *a, struct json_out *w)
{
	*o = (struct sqs_out){ .a = a, .b = &a->x->out };
	if (!sqs_of(a)->xml)
		o->w = w ? w : &o->own;
}

void
sqs_out_begin(struct sqs_out *o, struct apicall *a, struct json_out *w)
{
	const char *const name = sqs_of(a)->action->name;

	sqs_out_resume(o, a, w);
	if (o->w) {
		json_out_open(o->w, o->b);
		return;
	}
	buf_printf(o->b, "<?xml version=\"1.0\"?><%sResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\"><%sResult>",
		   name, name);
}

void
sqs_out_text(struct sqs_out *o, const char *name, struct slice text)
{
	if (o->w)
		json_out_str(o->w, name, text);
	else
		xml_text(o->b, name, text);
}

void
sqs_out_plain(struct sqs_out *o, const char *name, struct slice text)
{
	if (o->w) {
		json_out_plain(o->w, name, text);
		return;
	}
	tag(o->b, "<", name, ">");
	buf_put(o->b, text.p, text.n);
	tag(o->b, "</", name, ">");
}

void
sqs_out_number(struct sqs_out *o, const char *name, int64_t n)
{
	char text[24];

	if (o->w) {
		json_out_i64(o->w, name, n);
		return;
	}
	(void)snprintf(text, sizeof text, "%" PRId64, n); /* fits */
	xml_text(o->b, name, slice_of(text));
}

void
sqs_out_bool(struct sqs_out *o, const char *name, bool v)
{
	if (o->w)
		json_out_bool(o->w, name, v);
	else
		xml_text(o->b, name, slice_of(v ? "true" : "false"));
}

void
sqs_out_list(struct sqs_out *o, const char *json, const char *xml)
{
	o->tag = xml;
	if (o->w)
		json_out_array(o->w, json);
}

void
sqs_out_item(struct sqs_out *o)
{
	if (o->w)
		json_out_object(o->w, NULL);
	else
		tag(o->b, "<", o->tag, ">");
}

void
sqs_out_item_end(struct sqs_out *o)
{
	if (o->w)
		json_out_close(o->w);
	else
		tag(o->b, "</", o->tag, ">");
}

void
sqs_out_element(struct sqs_out *o, struct slice text)
{
	if (o->w)
		json_out_str(o->w, NULL, text);
	else
		xml_text(o->b, o->tag, text);
}

void
sqs_out_list_end(struct sqs_out *o)
{
	if (o->w)
		json_out_close(o->w);
}

void
sqs_out_map(struct sqs_out *o, const char *json, const char *xml, const char *key)
{
	o->tag = xml;
	o->key = key;
	if (o->w)
		json_out_object(o->w, json);
}

void
sqs_out_pair_of(struct sqs_out *o, struct slice name, struct slice value)
{
	if (o->w) {
		json_out_name(o->w, name);
		json_out_str(o->w, NULL, value);
		return;
	}
	tag(o->b, "<", o->tag, ">");
	xml_text(o->b, o->key, name);
	xml_text(o->b, "Value", value);
	tag(o->b, "</", o->tag, ">");
}

void
sqs_out_pair(struct sqs_out *o, const char *name, struct slice value)
{
	if (o->w)
		json_out_str(o->w, name, value);
	else
		sqs_out_pair_of(o, slice_of(name), value);
}

void
sqs_out_map_end(struct sqs_out *o)
{
	if (o->w)
		json_out_close(o->w);
}

void
sqs_out_open(struct sqs_out *o, struct slice name)
{
	if (o->w) {
		json_out_name(o->w, name);
		json_out_object(o->w, NULL);
		return;
	}
	tag(o->b, "<", o->tag, ">");
	xml_text(o->b, o->key, name);
	buf_puts(o->b, "<Value>");
}

void
sqs_out_close(struct sqs_out *o)
{
	if (o->w) {
		json_out_close(o->w);
		return;
	}
	buf_puts(o->b, "</Value>");
	tag(o->b, "</", o->tag, ">");
}

static void
end_response(struct apicall *a)
{
	const char *const name = sqs_of(a)->action->name;
	const char *const id = call_added(call_of(a->x), "x-amzn-RequestId");

	buf_printf(&a->x->out, "<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>\n",
		   id ? id : "", name);
}

static void
end_object(struct sqs_out *o)
{
	if (o->w) {
		json_out_close(o->w);
		return;
	}
	tag(o->b, "</", sqs_of(o->a)->action->name, "Result>");
	end_response(o->a);
}

/* Whether an op of the call has changed something. */
static bool
has_changed(const struct apicall *a)
{
	for (unsigned i = 0; i < a->n_ops; i++)
		if (a->ops[i].rc == 0 && op_is(a->ops[i].verb, OP_CHANGES))
			return true;
	return false;
}

static void
answer(struct apicall *a)
{
	if (a->x->out.failed)
		apicall_refuse(a, has_changed(a) ? SLU_EUNKNOWN : SLU_ENOMEM, NULL);
	else
		call_answer(call_of(a->x), 200, sqs_of(a)->xml ? xml_type : json_type, &a->x->out);
}

void
sqs_out_end(struct sqs_out *o)
{
	end_object(o);
	answer(o->a);
}

void
sqs_out_nothing(struct apicall *a)
{
	if (!sqs_of(a)->xml) {
		buf_puts(&a->x->out, "{}");
	} else {
		buf_printf(&a->x->out, "<?xml version=\"1.0\"?><%sResponse xmlns=\"http://queue.amazonaws.com/doc/2012-11-05/\">",
			   sqs_of(a)->action->name);
		end_response(a);
	}
	answer(a);
}
