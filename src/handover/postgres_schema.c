#include "handover/postgres_schema.h"

/* A name of core/names.h has these characters. A regular expression would take as long as the rest of push, and a CHECK of the
 * table longer: the server reads its text again for each statement. */
#define LETTERS "'abcdefghijklmnopqrstuvwxyz0123456789_-.ABCDEFGHIJKLMNOPQRSTUVWXYZ'"

/* The parameters of push beside namespace, queue and payload. */
#define OPTIONS                                                                                                            \
	" key text DEFAULT NULL, priority integer DEFAULT NULL, delay interval DEFAULT NULL, ttl interval DEFAULT NULL,\n" \
	"  idempotency_key text DEFAULT NULL, attributes jsonb DEFAULT NULL, content_type text DEFAULT NULL,\n"            \
	"  correlation_id text DEFAULT NULL, max_attempts integer DEFAULT NULL"

#define INVALID(name)                                                                                                        \
	"pg_catalog.translate(" name ", " LETTERS ", '') OPERATOR(pg_catalog.<>) '' OR " name " OPERATOR(pg_catalog.=) ''\n" \
	"      OR pg_catalog.left(" name ", 1) OPERATOR(pg_catalog.=) '.' OR pg_catalog.octet_length(" name ") OPERATOR(pg_catalog.>) 128"

#define REFUSE(what, name)                                                                                                                     \
	"  IF " INVALID(name) " THEN\n"                                                                                                        \
			      "    RAISE EXCEPTION 'invalid " what ": %; expected 1 to 128 of A-Z a-z 0-9 _ - . and no dot first', " name "\n" \
			      "      USING ERRCODE = 'check_violation';\n"                                                                     \
			      "  END IF;\n"

#define CHECKS REFUSE("namespace", "push.namespace") REFUSE("queue", "push.queue")

/* The options of a message that has only its content type. Most have one of two: to build their JSON would take as long as the
 * checks of the names. */
#define CONTENT(type) "      WHEN push.content_type OPERATOR(pg_catalog.=) '" type "' THEN '{\"content_type\": \"" type "\"}'::pg_catalog.jsonb\n"

#define CONTENTS \
	"      WHEN push.content_type IS NULL THEN NULL\n" CONTENT("text/plain; charset=utf-8") CONTENT("application/json") "      ELSE pg_catalog.jsonb_build_object('content_type', push.content_type)\n"

#define PASS "key, priority, delay, ttl, idempotency_key, attributes, "

const char handover_postgres_schema[] =
	"BEGIN;\n"
	"CREATE SCHEMA IF NOT EXISTS sluice;\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.inbox (\n"
	"  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,\n"
	"  namespace text NOT NULL,\n"
	"  queue text NOT NULL,\n"
	"  payload bytea NOT NULL,\n"
	"  options jsonb\n"
	") WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.inbox_batch (\n"
	"  batch bigint PRIMARY KEY,\n"
	"  shard text NOT NULL,\n"
	"  ids bigint[] NOT NULL\n"
	") WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);\n"
	"\n"
	"-- Earlier versions marked the rows themselves.\n"
	"DO $update$ BEGIN\n"
	"  IF EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'sluice.inbox'::regclass AND attname = 'batch' AND NOT attisdropped) THEN\n"
	"    INSERT INTO sluice.inbox_batch SELECT batch, min(shard), array_agg(id ORDER BY id) FROM sluice.inbox\n"
	"      WHERE batch IS NOT NULL GROUP BY batch;\n"
	"    ALTER TABLE sluice.inbox DROP COLUMN batch, DROP COLUMN shard, DROP CONSTRAINT IF EXISTS inbox_namespace_check,\n"
	"      DROP CONSTRAINT IF EXISTS inbox_queue_check;\n"
	"  END IF;\n"
	"END $update$;\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.inbox_state (\n"
	"  one boolean PRIMARY KEY DEFAULT true CHECK (one),\n"
	"  source uuid NOT NULL DEFAULT gen_random_uuid(),\n"
	"  batch bigint NOT NULL DEFAULT 0,\n"
	"  holder uuid,\n"
	"  seen timestamptz\n"
	") WITH (fillfactor = 50);\n"
	"INSERT INTO sluice.inbox_state DEFAULT VALUES ON CONFLICT DO NOTHING;\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.inbox_sleep (\n"
	"  one boolean PRIMARY KEY DEFAULT true CHECK (one),\n"
	"  asleep boolean NOT NULL DEFAULT false\n"
	") WITH (fillfactor = 50);\n"
	"INSERT INTO sluice.inbox_sleep DEFAULT VALUES ON CONFLICT DO NOTHING;\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.refused (\n"
	"  id bigint PRIMARY KEY,\n"
	"  namespace text NOT NULL,\n"
	"  queue text NOT NULL,\n"
	"  payload bytea NOT NULL,\n"
	"  options jsonb,\n"
	"  why text NOT NULL,\n"
	"  refused_at timestamptz NOT NULL DEFAULT now()\n"
	");\n"
	"\n"
	"CREATE OR REPLACE FUNCTION sluice.inbox_options(\n"
	" " OPTIONS ")\n"
	"RETURNS jsonb LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $options$\n"
	"  SELECT jsonb_strip_nulls(jsonb_build_object('key', key, 'priority', priority,\n"
	"    'deliver_after', to_char((clock_timestamp() + delay) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),\n"
	"    'ttl', extract(epoch FROM ttl), 'idempotency_key', idempotency_key, 'attributes', attributes,\n"
	"    'content_type', content_type, 'correlation_id', correlation_id, 'max_attempts', max_attempts)) $options$;\n"
	"\n"
	"-- Every name has its schema: SET search_path, which SECURITY DEFINER needs otherwise, would cost each call.\n"
	"CREATE OR REPLACE FUNCTION sluice.push(namespace text, queue text, payload bytea,\n"
	" " OPTIONS ")\n"
	"RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $push$\n"
	"DECLARE new_id bigint; sleeps boolean;\n"
	"BEGIN\n" CHECKS
	"  INSERT INTO sluice.inbox (namespace, queue, payload, options) VALUES (push.namespace, push.queue, push.payload,\n"
	"    CASE WHEN push.key IS NOT NULL OR push.priority IS NOT NULL OR push.delay IS NOT NULL OR push.ttl IS NOT NULL\n"
	"        OR push.idempotency_key IS NOT NULL OR push.attributes IS NOT NULL OR push.correlation_id IS NOT NULL\n"
	"        OR push.max_attempts IS NOT NULL\n"
	"      THEN sluice.inbox_options(push.key, push.priority, push.delay, push.ttl, push.idempotency_key, push.attributes,\n"
	"        push.content_type, push.correlation_id, push.max_attempts)\n" CONTENTS
	"    END) RETURNING id, (SELECT asleep FROM sluice.inbox_sleep) INTO new_id, sleeps;\n"
	"  IF sleeps THEN\n"
	"    PERFORM pg_catalog.pg_notify('sluice_inbox', '');\n"
	"  END IF;\n"
	"  RETURN new_id;\n"
	"END $push$;\n"
	"\n"
	"CREATE OR REPLACE FUNCTION sluice.push(namespace text, queue text, payload text,\n"
	" " OPTIONS ")\n"
	"RETURNS bigint LANGUAGE sql AS $push$\n"
	"  SELECT sluice.push(namespace, queue, convert_to(payload, 'UTF8'), " PASS "\n"
	"    coalesce(content_type, 'text/plain; charset=utf-8'), correlation_id, max_attempts) $push$;\n"
	"\n"
	"CREATE OR REPLACE FUNCTION sluice.push(namespace text, queue text, payload jsonb,\n"
	" " OPTIONS ")\n"
	"RETURNS bigint LANGUAGE sql AS $push$\n"
	"  SELECT sluice.push(namespace, queue, convert_to(payload::text, 'UTF8'), " PASS "\n"
	"    coalesce(content_type, 'application/json'), correlation_id, max_attempts) $push$;\n"
	"COMMIT;\n";
