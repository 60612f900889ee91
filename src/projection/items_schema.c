#include "projection/items.h"

#define COLUMNS                                   \
	"  id bigint PRIMARY KEY,\n"              \
	"  namespace text NOT NULL,\n"            \
	"  topic text NOT NULL,\n"                \
	"  status text NOT NULL,\n"               \
	"  priority integer NOT NULL,\n"          \
	"  payload bytea,\n"                      \
	"  deliver_after timestamptz NOT NULL,\n" \
	"  lease_expires_at timestamptz,\n"       \
	"  created_at timestamptz NOT NULL,\n"    \
	"  shard text NOT NULL"

/* A table whose rows live for a short time is vacuumed by their number, not by its size. */
#define VACUUM "(autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02)"

const char items_schema[] =
	"BEGIN;\n"
	"CREATE SCHEMA IF NOT EXISTS sluice;\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.items (\n" COLUMNS "\n"
	") WITH " VACUUM ";\n"
	"CREATE INDEX IF NOT EXISTS items_next ON sluice.items (namespace, topic, status, priority, deliver_after);\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.dead_letters (\n" COLUMNS ",\n"
	"  reason text NOT NULL,\n"
	"  error text,\n"
	"  died_at timestamptz NOT NULL\n"
	") WITH " VACUUM ";\n"
	"CREATE INDEX IF NOT EXISTS dead_letters_last ON sluice.dead_letters (namespace, topic, died_at);\n"
	"\n"
	"CREATE TABLE IF NOT EXISTS sluice.projection (\n"
	"  shard text PRIMARY KEY,\n"
	"  epoch bigint NOT NULL,\n"
	"  position bigint NOT NULL,\n"
	"  wanted bigint NOT NULL DEFAULT 0,\n"
	"  updated_at timestamptz NOT NULL DEFAULT now()\n"
	") WITH (fillfactor = 50);\n"
	"COMMIT;\n";
