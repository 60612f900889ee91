-- move.lua - the steps of queues that move to or from another shard: engine/move.h.
--
-- The batch that is set aside is in `taken`, a sorted set. Its rows have the scores 1, 2, ...:
--
--      m:<id>      a message. It is in msg and all, with its old state, and in no other set
--      i:<key>     an idempotency key; all keys of a batch are one row. It stays in idem
--      r:<id>      a result. It stays in results; its end is <id>:u of msg
--      s:<n>:<field>   the nth document of a lock key, or of the message before it
--
-- With score 0, k:<key> is an ordering key that new messages may not use now, l:<key> a lock key
-- that may not be acquired. Meta has the number of the batch, `away`: the number of messages of
-- each state, of keys and of results in it, `whom`: the shard it is for, and `given:<shard>`:
-- the last batch from that shard, negative if it was refused.

do

local SCAN = 10000 -- how many messages that cannot move are passed over
local KEYS_AWAY, RESULTS_AWAY = 6, 7

-- ---- Taking ----

local function has_locks(q)
	return string.sub(q.name, -7) == '/.locks'
end

local function is_full(b)
	return b.n >= b.max or (b.max_bytes > 0 and b.bytes >= b.max_bytes)
end

local function next_row(b)
	b.row = b.row + 1
	b.n = b.n + 1
	return b.row
end

local function add_documents(q, b, field)
	for i = 1, fates.documents(q, field) do
		write('ZADD', q.taken, next_row(b), 's:' .. i .. ':' .. field)
	end
end

local function set_aside(q, b, id, m)
	leave(q, id, m)
	if m.e > 0 then
		write('ZREM', q.ttl, member(m, id))
	end
	q.loaded[id] = m
	write('ZADD', q.taken, next_row(b), 'm:' .. id)
	q.away[m.s] = q.away[m.s] + 1
	b.bytes = b.bytes + call('HSTRLEN', q.msg, id .. ':r')
	if m.st then
		add_documents(q, b, id .. ':s')
	end
end

-- The messages of a key that are not dead, in order; nil if one of them is leased.
local function sequence_of(q, k)
	local first = head(q, k)
	local ids = { first or nil }

	if first and load(q, first).s == LEASED then
		return nil
	end
	for _, key in ipairs({ q.held, q.later }) do
		for _, mem in ipairs(call('ZRANGEBYLEX', key, '[' .. k .. ':', '(' .. k .. ';')) do
			local id = string.match(mem, ':(%d+)$')

			if id ~= first then
				ids[#ids + 1] = id
			end
		end
	end
	return ids
end

-- A dead letter stays with the sequence of its key: if it is redriven, it joins that sequence.
local function take_message(q, b, id, m)
	if m.k and m.s == DEAD and not b.keys[m.k] and has_sequence(q, m.k) then
		return false
	end
	if not m.k or m.s == DEAD then
		set_aside(q, b, id, m)
		return true
	end
	local ids = sequence_of(q, m.k)

	for _, each in ipairs(ids or {}) do
		set_aside(q, b, each, load(q, each))
	end
	if ids then
		write('ZADD', q.taken, 0, 'k:' .. m.k)
		b.keys[m.k] = true
	end
	return ids
end

-- Takes messages of one sorted set, in order.
local function take_from(q, b, key)
	local passed = 0

	while not is_full(b) and passed < SCAN do
		local mems = call('ZRANGE', key, passed, passed + b.max - b.n - 1)

		for _, mem in ipairs(mems) do
			local id = id_of(mem)
			local m = load(q, id)

			if not q.loaded[id] and not is_full(b) and not take_message(q, b, id, m) then
				passed = passed + 1
			end
		end
		if #mems == 0 then
			return
		end
	end
end

-- Ends the lease of a lock key, at most as many per batch as there may be rows.
local function take_lease(q, b, key)
	if b.ended < b.max and fates.release(q, key) then
		b.ended = b.ended + 1
	end
end

-- Takes lock keys that have a state and are not leased.
local function take_keys(q, b, forced)
	local from = '-'

	while not is_full(b) do
		local keys = call('ZRANGEBYLEX', q.all, from, '+', 'LIMIT', 0, b.max)

		for _, key in ipairs(keys) do
			if forced and not is_full(b) then
				take_lease(q, b, key)
			end
			if not is_full(b) and fates.can_move(q, key) then
				add_documents(q, b, 'l:' .. key)
				write('ZADD', q.taken, 0, 'l:' .. key)
			end
			from = '(' .. key
		end
		if #keys == 0 then
			return
		end
	end
end

-- Takes what outlives messages: idempotency keys first, as one row, then results.
local function take_ends(q, b)
	local passed, results, keys_row = 0, {}, nil

	while b.n + #results < b.max do
		local mems = call('ZRANGE', q.ends, passed, passed + b.max - b.n - #results - 1, 'WITHSCORES')

		for i = 1, #mems, 2 do
			local kind, name = string.sub(mems[i], 1, 1), string.sub(mems[i], 3)

			if kind == 'i' then
				keys_row = keys_row or next_row(b)
				b.n = b.n + 1
				write('ZADD', q.taken, keys_row, mems[i])
				q.away[KEYS_AWAY] = q.away[KEYS_AWAY] + 1
			elseif kind == 'r' then
				results[#results + 1] = mems[i]
				write('HSET', q.msg, name .. ':u', mems[i + 1])
			else
				passed = passed + 1
			end
			if kind == 'i' or kind == 'r' then
				write('ZREM', q.ends, mems[i])
			end
		end
		if #mems == 0 then
			break
		end
	end
	for _, mem in ipairs(results) do
		write('ZADD', q.taken, next_row(b), mem)
	end
	q.away[RESULTS_AWAY] = #results
end

-- Ends leases, as if their holders had returned them.
local function force(q, max)
	for _, mem in ipairs(call('ZRANGE', q.inprog, 0, max - 1)) do
		local id = id_of(mem)

		settles['return'](q, { id = id, token = load(q, id).t }, -math.huge)
		q.ended[#q.ended + 1] = id
	end
end

-- Whether only dead letters are left: then idempotency keys and results may move.
local function is_drained(q)
	return ready_count(q) == 0 and call('ZCARD', q.delayed) == 0 and call('ZCARD', q.inprog) == 0 and
		call('ZCARD', q.held) == 0
end

local function take(q, max, max_bytes, forced)
	local b = { row = 0, n = 0, bytes = 0, ended = 0, max = max, max_bytes = max_bytes, keys = {} }

	q.loaded = {} -- messages that this step sets aside

	if has_locks(q) then
		take_keys(q, b, forced)
	else
		if forced then
			force(q, max)
		end
		for _, p in ipairs(q.order) do
			take_from(q, b, q.pending[p])
		end
		take_from(q, b, q.delayed)
		take_from(q, b, q.dlq)
		if is_drained(q) then
			take_ends(q, b)
		end
	end
	if b.row > 0 then
		q.batch, q.changed = int(next_number(q)), true -- MOVE-8: numbers of batches rise
		call('HSET', q.meta, 'batch', q.batch, 'away', table.concat(q.away, ' '), 'whom', q.lives)
	end
end

-- ---- Rows of a batch ----

local row_of = {} -- by kind: returns the row and its size

function row_of.m(q, id)
	local m = row(q, id, q.loaded and q.loaded[id] or load(q, id), true)

	return { 0, m }, #m[17]
end

function row_of.r(q, id)
	local text = call('HGET', q.results, id)

	return { 2, id, call('HGET', q.msg, id .. ':u'), text }, #text
end

function row_of.s(q, name)
	local which, field = string.match(name, '^(%d+):(.*)$')
	local doc, hidden = fates.document(q, field, tonumber(which))

	return { 3, doc, hidden }, #doc[7]
end

-- All idempotency keys are one row.
function row_of.i(q, key, row_before)
	local id, until_, digest = read_key(q, key)
	local out = row_before or { 1 }

	for _, word in ipairs({ id, until_, key, digest }) do
		out[#out + 1] = word
	end
	return out, 0
end

-- Rows after `from`, and the last of them; 0 if there are no more.
local function page(q, from, max, max_bytes)
	local rows, total, last = {}, 0, from
	local mems = call('ZRANGEBYSCORE', q.taken, int(from + 1), int(from + max), 'WITHSCORES')

	for i = 1, #mems, 2 do
		local mem, place = mems[i], tonumber(mems[i + 1])
		local one, size = row_of[string.sub(mem, 1, 1)](q, string.sub(mem, 3), rows[place - from])

		if #rows > 0 and max_bytes > 0 and total + size > max_bytes then
			break
		end
		total, last = total + size, place
		rows[place - from] = one
	end
	return rows, call('ZCOUNT', q.taken, int(last + 1), '+inf') > 0 and last or 0
end

-- ---- Putting back, and letting go ----

local back, gone = {}, {}

function back.m(q, id)
	local m = load(q, id)

	if m.e > 0 then
		write('ZADD', q.ttl, m.e, member(m, id))
	end
	enter(q, id, m, m.s)
end

function back.i(q, key)
	local _, until_ = read_key(q, key)

	write('ZADD', q.ends, until_, 'i:' .. key)
end

function back.r(q, id)
	write('ZADD', q.ends, call('HGET', q.msg, id .. ':u'), 'r:' .. id)
	write('HDEL', q.msg, id .. ':u')
end

function back.k() end

back.l, back.s = back.k, back.k

function gone.m(q, id)
	forget(q, id, load(q, id), 0)
end

function gone.i(q, key)
	write('HDEL', q.idem, key)
end

function gone.r(q, id)
	write('HDEL', q.results, id)
	write('HDEL', q.msg, id .. ':u')
end

function gone.k(q, k)
	write('HDEL', q.heads, k)
end

gone.l, gone.s = fates.gone, back.s

local function end_batch(q, batch, each)
	if q.batch ~= batch then
		return
	end
	for _, mem in ipairs(call('ZRANGE', q.taken, 0, -1)) do
		each[string.sub(mem, 1, 1)](q, string.sub(mem, 3))
	end
	call('DEL', q.taken)
	call('HDEL', q.meta, 'batch', 'away', 'whom')
	q.batch, q.away, q.changed = false, read_away(), true
end

-- ---- Accepting ----

local function stand(q, id, m, s)
	if s == DEAD then
		enter(q, id, m, DEAD)
	elseif s == DELAYED then
		if m.k and m.g % 2 == HOLDS and not head(q, m.k) then
			write('HSET', q.heads, m.k, id) -- the message waits for its next attempt
		end
		enter(q, id, m, DELAYED)
	elseif m.k then
		join(q, id, m)
	else
		enter(q, id, m, READY)
	end
end

-- By kind: accepts a row from another shard. A row begins with words: kind, id, then the fields
-- of that kind. Returns 1 if it is a new message.
local accepts = {}

accepts['0'] = function(q, id, words)
	local key, text, record = arg(), arg(), arg()
	local m = { i = key ~= '' and key or nil }
	local fields = { 'p', 'd', 'e', 'ac', 'm', 'kp', 'a', 'x', 'g', 'r' }
	local s = tonumber(words())

	if call('HEXISTS', q.msg, id) == 1 then
		return 0
	end
	for _, field in ipairs(fields) do
		m[field] = tonumber(words())
	end
	if s == READY or s == HELD then
		m.d = math.min(m.d, now) -- the clock of the other shard may be ahead
	end
	local digest = string.sub(words(), 2) -- after an x, because it may be empty

	m.k, m.n, m.ad = words(), next_number(q), m.d
	m.r, m.e = m.r > 0 and m.r or nil, s ~= DEAD and m.e or 0
	write('HSET', q.msg, id .. ':r', record)
	if text and text ~= '' then
		call('HSET', q.msg, id .. ':e', text)
	end
	write('ZADD', q.all, m.n, id)
	count_prio(q, m.p, 1)
	if m.i and not known(q, m.i) then
		write('HSET', q.idem, m.i, id .. ':0' .. digest_end(q, digest))
	end
	if m.e > 0 then
		write('ZADD', q.ttl, m.e, member(m, id))
	end
	stand(q, id, m, s)
	q.last = id
	return 1
end

accepts['1'] = function(q, id, words)
	local key, until_ = arg(), words()
	local digest = string.sub(words(), 2) -- after an x, because it may be empty

	if known(q, key) then
		return 0
	end
	write('HSET', q.idem, key, id .. ':' .. until_ .. digest_end(q, digest))
	write('ZADD', q.ends, until_, 'i:' .. key)
	return 0
end

accepts['2'] = function(q, id, words)
	write('ZADD', q.ends, words(), 'r:' .. id)
	call('HSETNX', q.results, id, arg())
	return 0
end

accepts['3'] = function(q, id, words)
	local given, key = {}, arg()

	given.name, given.head, given.payload = arg(), arg(), arg()
	for _, field in ipairs({ 'version', 'etag', 'updated', 'hidden', 'at' }) do
		given[field] = tonumber(words())
	end
	if has_locks(q) then
		if q.last ~= key and not fates.makes_room(q, key, given.version) then
			return 0
		end
		q.last = key
		fates.accept(q, key, nil, given)
	elseif q.last == id then -- otherwise the message was here already
		fates.accept(q, nil, id, given)
	end
	return 0
end

local function accept_next(q)
	local words = string.gmatch(arg(), '%S+')

	return accepts[words()](q, words(), words)
end

-- The number of arguments of a row, by kind, with its words.
local sizes = { ['0'] = 4, ['1'] = 2, ['2'] = 2, ['3'] = 5 }

-- MOVE-8: whether one of the rows is here and on its way to another shard. Changes nothing.
local function is_leaving(q, n)
	local from, found = at, false

	for _ = 1, q.batch and n or 0 do
		local kind, id = string.match(arg(), '^(%d) (%d+)')

		if kind == '0' then
			found = found or is_set_aside(q, id)
		elseif kind == '3' and has_locks(q) then
			found = found or call('ZSCORE', q.taken, 'l:' .. ARGV[at + 1])
		end
		at = at + sizes[kind] - 1
	end
	at = from
	return found
end

-- ---- Steps ----

-- The number of messages that are leased or wait behind a leased one; for lock keys, of leases.
local function leased(q)
	if has_locks(q) then
		return tonumber(call('HGET', q.meta, 'leases') or '0')
	end
	local n = call('ZCARD', q.inprog)

	for _, mem in ipairs(call('ZRANGE', q.inprog, 0, SCAN - 1)) do
		local k = load(q, id_of(mem)).k

		for _, key in ipairs(k and { q.held, q.later } or {}) do
			n = n + call('ZLEXCOUNT', key, '[' .. k .. ':', '(' .. k .. ';')
		end
	end
	return n
end

-- The number of messages; for lock keys, of keys with a state or a lease: `ends` has the keys
-- that are leased or have no state.
local function messages(q)
	local n = call('ZCARD', q.all)

	return has_locks(q) and n - call('ZCARD', q.ends) + leased(q) or n
end

local function kept_keys(q)
	local results = call('HLEN', q.results) - q.away[RESULTS_AWAY]

	return has_locks(q) and 0 or call('ZCARD', q.ends) - call('HLEN', q.ops) - results + q.away[KEYS_AWAY]
end

local steps = {}

function steps.look() end

function steps.mark(q)
	if q.said then
		mark(q, q.said, '', true) -- the other shards have their marks by now
	end
end

function steps.take(q)
	local from, max, max_bytes, forced = num(), num(), num(), num()

	if is_late(q) then
		return {}, 0, -1
	end
	if not q.batch and from == 0 then
		take(q, max, max_bytes, forced == 1)
	end
	if q.batch then
		return page(q, from, max, max_bytes)
	end
end

function steps.untake(q)
	end_batch(q, arg(), back)
end

function steps.drop(q)
	end_batch(q, arg(), gone)
end

local function last_given(q, field)
	return tonumber(call('HGET', q.meta, field) or '0')
end

function steps.refuse(q)
	local field, batch = 'given:' .. arg(), num()
	local last = last_given(q, field)

	if math.abs(last) < batch then
		call('HSET', q.meta, field, int(-batch))
		q.changed, last = true, -batch
	end
	return {}, 0, last == -batch and 0 or 1
end

function steps.give(q)
	local field, batch, least, n, given = 'given:' .. arg(), num(), num(), num(), 0
	local last = last_given(q, field)

	lift(q, least)
	if last == -batch then
		return {}, 0, -1
	elseif math.abs(last) >= batch then
		return {}, 0, 0
	elseif q.said and is_elsewhere(q) then
		return {}, 0, -1 -- MOVE-12
	elseif is_leaving(q, n) then
		return {}, 0, -2
	end
	for _ = 1, n do
		given = given + accept_next(q)
	end
	call('HSET', q.meta, field, int(batch))
	q.changed = true
	return {}, 0, given
end

function verbs.move(queues)
	local q = queues[1]
	local rows, cursor, given = steps[arg()](q)

	return { int(q.epoch), q.lives, messages(q), leased(q), call('SCARD', q.aside),
		kept_keys(q), call('HLEN', q.results), q.batch or '0', int(counter(q)), cursor or 0,
		given or 0, rows or {}, call('HGET', q.meta, 'whom') or '' }
end

end
