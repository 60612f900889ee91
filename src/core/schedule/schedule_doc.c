#include "core/schedule/schedule_doc.h"

#include "base/json/json_out.h"
#include "base/json/json_table.h"

/* ---- Encode ---- */

static void
encode_events(const struct schedule *s, struct json_out *w)
{
	json_out_array(w, "events");
	for (uint32_t i = 0; i < s->n_events; i++) {
		const struct schedule_event *const e = &s->events[i];

		json_out_array(w, NULL);
		json_out_i64(w, NULL, e->tick);
		json_out_i64(w, NULL, e->at);
		json_out_u64(w, NULL, e->id);
		json_out_u64(w, NULL, e->outcome);
		json_out_close(w);
	}
	json_out_close(w);
}

void
schedule_encode(const struct schedule *s, struct buf *out)
{
	char missed[16];
	struct json_out w;

	json_out_open(&w, out);
	json_out_u64(&w, "version", SCHEDULE_DOC_VERSION);
	json_out_str(&w, "name", slice_of(s->name));
	json_out_str(&w, "when", slice_of(s->when));
	json_out_str(&w, "zone", slice_of(s->zone));
	json_out_str(&w, "missed", slice_of(schedule_missed_text(s, missed)));
	json_out_str(&w, "overlap", slice_of(schedule_overlap_text(s)));
	json_out_i64(&w, "jitter", s->jitter);
	json_out_bool(&w, "paused", s->paused);
	json_out_raw(&w, "message", s->message);
	json_out_i64(&w, "anchor", s->anchor);
	json_out_i64(&w, "last", s->last);
	json_out_u64(&w, "fired", s->fired);
	json_out_u64(&w, "lost", s->lost);
	json_out_u64(&w, "overlapped", s->overlapped);
	json_out_u64(&w, "last_id", s->last_id);
	json_out_str(&w, "queue", slice_of(s->queue));
	encode_events(s, &w);
	json_out_finish(&w);
}

/* ---- Decode ---- */

struct doc {
	struct schedule s;
	uint64_t version;
	struct slice missed, overlap;
};

static void
read_events(struct json *r, const struct json_field *f, void *place)
{
	struct schedule *const s = place;

	(void)f;
	json_array(r);
	while (json_element(r)) {
		struct schedule_event e = { 0 };
		unsigned i = 0;

		json_array(r);
		for (; json_element(r); i++) {
			const uint64_t n = json_u64(r, 0, INT64_MAX);

			e.tick = i == 0 ? (slu_time)n : e.tick;
			e.at = i == 1 ? (slu_time)n : e.at;
			e.id = i == 2 ? n : e.id;
			e.outcome = i == 3 ? n : e.outcome;
		}
		if (i != 4 || s->n_events == SCHEDULE_HISTORY)
			json_fail(r, SLU_EINVAL, NULL, "expected at most %d events of 4 numbers", SCHEDULE_HISTORY);
		else
			s->events[s->n_events++] = e;
	}
}

#define FIELD(text, how, member, ...) JSON_ROW(text, json_read_##how, struct doc, member, .required = true, __VA_ARGS__)

static const struct json_field fields[] = {
	FIELD("version", u64, version),
	FIELD("name", chars, s.name),
	FIELD("when", chars, s.when),
	FIELD("zone", chars, s.zone),
	FIELD("missed", text, missed),
	FIELD("overlap", text, overlap),
	FIELD("jitter", i64, s.jitter, .max = SCHEDULE_JITTER_MAX),
	FIELD("paused", bool, s.paused),
	FIELD("message", raw, s.message),
	FIELD("anchor", i64, s.anchor, .max = INT64_MAX),
	FIELD("last", i64, s.last, .max = INT64_MAX),
	FIELD("fired", u64, s.fired),
	FIELD("lost", u64, s.lost),
	FIELD("overlapped", u64, s.overlapped),
	FIELD("last_id", u64, s.last_id),
	FIELD("queue", chars, s.queue),
	JSON_ROW("events", read_events, struct doc, s, .required = true),
};

int
schedule_decode(struct slice doc, char *room, struct schedule *out, struct slu_err *err)
{
	struct doc d = { 0 };
	struct slu_err why = { 0 };
	struct json r;
	int rc;

	json_init(&r, doc, JSON_DEPTH);
	json_room(&r, room, doc.n);
	json_fields(&r, fields, COUNT(fields), JSON_LENIENT, &d);
	rc = json_end(&r, &why);
	if (!rc && (d.version < 1 || d.version > SCHEDULE_DOC_VERSION))
		rc = slu_fail(&why, SLU_EINVAL, "version: expected %d", SCHEDULE_DOC_VERSION);
	if (!rc)
		rc = schedule_missed_parse(d.missed, &d.s, &why);
	if (!rc)
		rc = schedule_overlap_parse(d.overlap, &d.s, &why);
	if (rc)
		return slu_fail(err, SLU_ECORRUPT, "invalid schedule: %.200s", why.text);
	*out = d.s;
	return 0;
}
