/*
 * settings.c - the settings of a store: bytes, and the search.
 */
#include "members/settings.h"

#include "base/crc32c.h"
#include "base/le.h"
#include "core/backoff.h"
#include "members/beat.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	SUMMED = 12 /* the sum covers the object from here on */
};

static const char magic[8] = { 's', 'l', 'u', 'i', 'c', 'e', 's', 't' };

void
settings_name(char out[LINE_NAME_MAX], uint64_t version)
{
	snprintf(out, LINE_NAME_MAX, SETTINGS_PREFIX "%0*" PRIu64, LINE_DIGITS, version);
}

uint64_t
settings_version(const char *name)
{
	const size_t n = strlen(SETTINGS_PREFIX);

	if (strncmp(name, SETTINGS_PREFIX, n) != 0 || strlen(name + n) != LINE_DIGITS ||
	    strspn(name + n, "0123456789") != LINE_DIGITS)
		return 0;
	return strtoull(name + n, NULL, 10);
}

void
settings_encode(const struct settings *s, char out[SETTINGS_SIZE])
{
	memset(out, 0, SETTINGS_SIZE);
	memcpy(out, magic, sizeof magic);
	le32_put(out + 12, s->format);
	le64_put(out + 16, s->version);
	memcpy(out + 24, s->uuid, SETTINGS_UUID);
	memcpy(out + 40, s->secret, SETTINGS_SECRET);
	le32_put(out + 72, s->shards);
	out[76] = (char)s->place;
	le32_put(out + 8, crc32c(0, out + SUMMED, SETTINGS_SIZE - SUMMED));
}

int
settings_decode(struct settings *s, struct slice object, struct slu_err *err)
{
	const char *const p = object.p;

	if (object.n != SETTINGS_SIZE || memcmp(p, magic, sizeof magic) != 0)
		return slu_fail(err, SLU_ECORRUPT, "not the settings of a store");
	if (crc32c(0, p + SUMMED, SETTINGS_SIZE - SUMMED) != le32_get(p + 8))
		return slu_fail(err, SLU_ECORRUPT, "bad checksum");
	*s = (struct settings){
		.version = le64_get(p + 16),
		.format = le32_get(p + 12),
		.shards = le32_get(p + 72),
		.place = (enum settings_place)(uint8_t)p[76],
	};
	memcpy(s->uuid, p + 24, SETTINGS_UUID);
	memcpy(s->secret, p + 40, SETTINGS_SECRET);
	if (s->version == 0 || s->format == 0 || s->shards == 0 || s->shards > BEAT_SHARDS_MAX ||
	    (s->format <= SETTINGS_FORMAT && s->place >= SETTINGS_PLACES))
		return slu_fail(err, SLU_ECORRUPT, "invalid settings");
	return 0;
}

/* ---- The search ---- */

static void
begin(struct settings_search *s)
{
	s->step = SETTINGS_LIST;
	s->highest = 0;
	s->after[0] = '\0';
}

void
settings_search_init(struct settings_search *s, const struct settings *proposal,
		     const struct slu_backoff *retry)
{
	*s = (struct settings_search){ .settings = *proposal, .retry = *retry };
	s->settings.version = 1;
	settings_encode(&s->settings, s->object);
	begin(s);
}

bool
settings_search_next(struct settings_search *s, slu_time now, struct line_request *r)
{
	if (s->found || s->failed || s->sent || s->not_before > now)
		return false;
	s->sent = true;
	*r = (struct line_request){ 0 };
	switch (s->step) {
	case SETTINGS_LIST:
		r->verb = LINE_LIST;
		snprintf(r->name, sizeof r->name, SETTINGS_PREFIX);
		snprintf(r->after, sizeof r->after, "%s", s->after);
		break;
	case SETTINGS_GET:
		r->verb = LINE_GET;
		settings_name(r->name, s->highest);
		break;
	case SETTINGS_PUT:
		r->verb = LINE_PUT;
		settings_name(r->name, 1);
		r->object = (struct slice){ s->object, SETTINGS_SIZE };
	}
	return true;
}

static void
on_list(struct settings_search *s, const struct line_answer *a)
{
	for (uint32_t i = 0; i < a->n_names; i++) {
		const uint64_t version = settings_version(a->names[i]);

		s->highest = version > s->highest ? version : s->highest;
	}
	if (a->more && a->n_names > 0)
		snprintf(s->after, sizeof s->after, "%s", a->names[a->n_names - 1]);
	else
		s->step = s->highest ? SETTINGS_GET : SETTINGS_PUT;
}

static void
on_get(struct settings_search *s, const struct line_answer *a)
{
	char name[LINE_NAME_MAX];
	struct slu_err err;

	if (a->result == LINE_ABSENT) {
		begin(s);
		return;
	}
	s->found = settings_decode(&s->settings, a->object, &err) == 0 &&
		   s->settings.version == s->highest;
	if (s->found)
		return;
	s->failed = true;
	settings_name(name, s->highest);
	(void)slu_fail(&s->err, SLU_ECORRUPT, "%s: damaged settings of the store", name);
}

void
settings_search_reply(struct settings_search *s, const struct line_answer *a, slu_time now,
		      uint64_t random)
{
	assert(s->sent);
	s->sent = false;
	if (a->result == LINE_FAILED) {
		s->not_before = now + backoff_delay(&s->retry, ++s->failures, random);
		begin(s);
		return;
	}
	s->failures = 0;
	switch (s->step) {
	case SETTINGS_LIST:
		on_list(s, a);
		break;
	case SETTINGS_GET:
		on_get(s, a);
		break;
	case SETTINGS_PUT:
		if (a->result == LINE_OK)
			s->found = true;
		else
			begin(s);
	}
}
