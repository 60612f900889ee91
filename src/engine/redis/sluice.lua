-- sluice.lua - every step of the messages of a queue, one call at a time.
--
-- A call is a verb with its arguments, for one queue. An enqueue may be for several queues,
-- and happens whole or not at all. Each call first handles what is due in its queues, so
-- nothing depends on a timer, and any node may do it.
--
-- KEYS     for each queue the keys of `names` below, then its keys pending:<priority>
-- ARGV     1 verb  2 time in us, '' = the server's  3 how many us ago the call arrived: what
--          fell due since then is left alone  4 steps allowed for what is due
--          5 dice, 0 .. 1  6 the default policy  7 'channel caller' of notices
--          8 number of queues, or with a map 'number epoch above lives': see engine/move.h
--          Then for each queue: its name, its priorities as '0,5,10', and the highest number
--          that the caller has seen. Then the arguments of the verb
--
-- Answer   { 'ok', time, steps used, answer of the verb, { for each queue: next due,
--            number of ready messages if it is news, failures, deaths, ends, ids whose lease
--            expired, free lock keys, where the queue lives, the last number taken (of any
--            call, if the queue lives elsewhere), the counter if it was behind,
--            1 if this call was the first to change the queue } }
--          { 'prios', queue, priority... }: nothing has happened; call again with the keys
--          of these priorities, too
--
-- Times are microseconds and numbers stay below 2^53, so both are exact in Lua. Ids do not:
-- they are always text.

local names = { 'meta', 'msg', 'delayed', 'inprog', 'dlq', 'held', 'heads', 'ttl', 'idem',
	'results', 'all', 'prios', 'ends', 'aside', 'ops', 'later', 'taken', 'counter' }

local READY, DELAYED, LEASED, HELD, DEAD, DAMAGED = 1, 2, 3, 4, 5, 6
local HOLDS, EXTENDED, SPARED = 1, 2, 16
local MAX_ATTEMPTS, EXPIRED, REJECTED = 1, 2, 3
local OK, ENOTFOUND, ELEASE, ECONFLICT = 0, 1, 2, 3
local LIFT = 2 ^ 20 -- a counter that is behind is raised so far above the number seen
local OP_KEPT = 30e6 -- how long the answer of a claim is stored, in us

local SPARE_TIME = 1e6 -- see ledger_spare in core/ledger/ledger.h
local SHUN_TIME = 20e3 -- LEDGER-13 there

local CALLER_KEPT = 86400e6 -- how long the last call of a caller is stored, in us

local verb, now, came, budget, dice = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local channel, caller = string.match(ARGV[7], '^(%S+) (%S+)$')
local at = 8 -- the last argument read
local key_at = 0
local fates = {} -- locks.lua: how lock keys and the states of messages change

local function arg()
	at = at + 1
	return ARGV[at]
end

local function num()
	return tonumber(arg())
end

local function int(n)
	return string.format('%d', n)
end

-- ---- Writes ----

-- Writes to one key that follow each other become one command. They wait until the call reads
-- what they write, or ends.
local WAIT_MAX = 1000 -- arguments; Lua has room for a few thousand
local waiting = {} -- by key: the command; `has` = its fields
local touched = {} -- keys, in order
local of_field = { HGET = true, HEXISTS = true, HSTRLEN = true }

local function flush(key)
	local w = waiting[key]

	if w then
		waiting[key] = nil
		redis.call(unpack(w))
	end
end

local function write(command, key, a, b)
	local w = waiting[key]

	if w and (w[1] ~= command or w.n > WAIT_MAX) then
		flush(key)
		w = nil
	end
	if not w then
		w = { command, key, n = 2, has = {} }
		waiting[key] = w
		touched[#touched + 1] = key
	end
	w[w.n + 1], w[w.n + 2] = a, b
	w.n = w.n + (b and 2 or 1)
	w.has[a] = true
end

local function call(command, key, ...)
	local w = waiting[key]

	if w and not (of_field[command] and not w.has[...]) then
		flush(key)
	end
	return redis.call(command, key, ...)
end

-- ---- Queues ----

local function read_policy(text)
	local p, i = {}, 0
	local fields = { 'lease', 'max_attempts', 'kind', 'base', 'max', 'jitter', 'ttl',
		'max_depth', 'max_rate', 'burst', 'warn_depth', 'window', 'dlq_retention',
		'dlq_max', 'require_lease', 'paused', 'strict', 'draining' }

	for word in string.gmatch(text, '%S+') do
		i = i + 1
		p[fields[i]] = tonumber(word)
	end
	return p
end

-- The number of messages set aside for each state, then of keys and of results: move.lua
local function read_away(text)
	local n = { 0, 0, 0, 0, 0, 0, 0 }

	for word in string.gmatch(text or '', '%d+') do
		n[#n + 1] = tonumber(word)
		table.remove(n, 1)
	end
	return n
end

local function open_queue(name, prios, seen)
	local q = { name = name, seen = seen, number = 0, lost = 0, pending = {}, order = {}, prio_count = {}, failed = 0, died = 0, done = 0, ended = {},
		freed = {}, told = {} }

	for i, name in ipairs(names) do
		q[name] = KEYS[key_at + i]
	end
	key_at = key_at + #names
	for p in string.gmatch(prios, '[^,]+') do
		key_at = key_at + 1
		q.pending[tonumber(p)] = KEYS[key_at]
		q.order[#q.order + 1] = tonumber(p)
	end
	table.sort(q.order)
	local meta = call('HMGET', q.meta, 'policy', 'time', 'epoch', 'lives', 'batch', 'away', 'did:' .. caller)
	q.has_policy = meta[1]
	q.policy = read_policy(meta[1] or ARGV[6])
	q.fresh = not meta[2] -- it was never changed, or was deleted
	q.time = tonumber(meta[2] or '0')
	q.epoch, q.lives = tonumber(meta[3] or '0'), meta[4] or ''
	q.batch, q.away = meta[5], read_away(meta[6])
	q.did = tonumber(meta[7] or '0')
	return q
end

-- MOVE-1: the highest epoch wins. A queue that never lived elsewhere needs no mark, unless
-- `written` asks for it.
local function mark(q, epoch, lives, written)
	if epoch > q.epoch and (lives ~= '' or q.epoch > 0 or written) then
		q.epoch, q.lives, q.changed = epoch, lives, true
		call('HSET', q.meta, 'epoch', int(epoch), 'lives', lives)
	end
end

-- MOVE-11: the queue has been elsewhere, and the caller's map is older than that.
local function is_late(q)
	return q.said and q.said > 0 and q.said < q.epoch
end

-- Whether a part of the queue may be on another shard.
local function is_elsewhere(q)
	return q.lives ~= '' or is_late(q)
end

-- Priorities in use whose key the caller did not declare.
local function unknown_prios(q)
	local missing = {}

	for _, p in ipairs(call('HKEYS', q.prios)) do
		if not q.pending[tonumber(p)] then
			missing[#missing + 1] = p
		end
	end
	return missing
end

-- REDIS-9: a number that is not above the caller's highest was given before, and the server
-- has lost that. Other nodes may have seen higher numbers: hence LIFT.
local counted = {} -- counters by key; written at the end

local function counter(q)
	return counted[q.counter] or tonumber(call('GET', q.counter) or '0')
end

-- MOVE-9
local function lift(q, least)
	if counter(q) < least then
		counted[q.counter] = least
	end
end

local function next_number(q)
	q.number = counter(q) + 1
	if q.number <= q.seen then
		q.lost, q.number = q.number, q.seen + LIFT
	end
	counted[q.counter] = q.number
	return q.number
end

-- Counts messages of a priority; written at the end.
local function count_prio(q, p, n)
	q.prio_count[p] = (q.prio_count[p] or 0) + n
end

local function write_out(queues)
	for _, q in ipairs(queues) do
		for p, n in pairs(q.prio_count) do
			if call('HINCRBY', q.prios, int(p), n) <= 0 then
				call('HDEL', q.prios, int(p))
			end
		end
	end
	for key, n in pairs(counted) do
		call('SET', key, int(n))
	end
	for _, key in ipairs(touched) do
		flush(key)
	end
end

-- ---- Messages: s state, p priority, d due, n number, a attempts, x failures, m its own
-- max_attempts, t token, u until, c claimed, e expires or 0, g flags, r reason, k key, i
-- idempotency key, kp how long its result is kept, ac accepted, ad due as requested, st it has
-- a state, f the stream that has its lease or failed it: '<node>.<number>', w until when that
-- stream does not get it again, o the owner of the lease ----

local function load(q, id)
	local text = call('HGET', q.msg, id)

	return text and cmsgpack.unpack(text)
end

local function save(q, id, m)
	q.changed = true
	write('HSET', q.msg, id, cmsgpack.pack(m))
end

local function member(m, id)
	return string.format('%016d:%s', m.n, id)
end

local function id_of(mem)
	return string.sub(mem, 18)
end

local function place(m, id)
	return string.format('%s:%016d:%016d:%s', m.k, m.d, m.n, id)
end

local function first_in(key, k)
	local found = call('ZRANGEBYLEX', key, '[' .. k .. ':', '(' .. k .. ';', 'LIMIT', 0, 1)[1]

	return found and string.match(found, ':(%d+)$')
end

local function first_held(q, k)
	return first_in(q.held, k)
end

-- The lease of a stream ends (until_ 0, or -1 = it expired) or is extended. The stream's node
-- counts unsettled messages, so it gets a notice, unless it is the caller, which sees the
-- answer.
local function notify_stream(q, id, m, until_)
	local node = m.f and string.match(m.f, '^%d+')

	if node and node ~= caller then
		q.told[node] = (q.told[node] or '') .. ' ' .. id .. ' ' .. int(m.t) .. ' ' .. int(until_)
	end
end

local function leave(q, id, m)
	q.changed = true
	if m.s == READY then
		write('ZREM', q.pending[m.p], member(m, id))
	elseif m.s == DELAYED then
		write('ZREM', q.delayed, member(m, id))
		if m.k then
			write('ZREM', q.later, place(m, id))
		end
	elseif m.s == LEASED then
		write('ZREM', q.inprog, member(m, id))
		notify_stream(q, id, m, q.lapses == id and -1 or 0)
		m.t, m.u, m.c, m.f, m.o = nil, nil, nil, nil, nil
		if m.e > 0 then
			write('ZADD', q.ttl, m.e, member(m, id))
		end
	elseif m.s == HELD then
		write('ZREM', q.held, place(m, id))
	elseif m.s == DEAD then
		write('ZREM', q.dlq, member(m, id))
	elseif m.s == DAMAGED then
		write('SREM', q.aside, id)
	end
end

local function enter(q, id, m, s)
	m.s = s
	if s == READY then
		write('ZADD', q.pending[m.p], m.d, member(m, id))
		q.woken = true
	elseif s == DELAYED then
		write('ZADD', q.delayed, m.d, member(m, id))
		if m.k then
			write('ZADD', q.later, 0, place(m, id))
		end
	elseif s == LEASED then
		write('ZADD', q.inprog, m.u, member(m, id))
		write('ZREM', q.ttl, member(m, id))
	elseif s == HELD then
		write('ZADD', q.held, 0, place(m, id))
	elseif s == DEAD then
		write('ZADD', q.dlq, m.d, member(m, id))
	elseif s == DAMAGED then
		write('SADD', q.aside, id)
	end
	save(q, id, m)
end

-- ---- The sequence of a key ----

local function head(q, k)
	return call('HGET', q.heads, k)
end

-- Whether the key has messages that are not dead.
local function has_sequence(q, k)
	return k and (head(q, k) or first_held(q, k) or first_in(q.later, k))
end

-- Whether the key is on its way to another shard.
local function is_away(q, k)
	return k and q.batch and call('ZSCORE', q.taken, 'k:' .. k)
end

-- Whether the message is on its way to another shard. Its s is unchanged.
local function is_set_aside(q, id)
	return q.batch and call('ZSCORE', q.taken, 'm:' .. id)
end

local function advance(q, k)
	local id = first_held(q, k)

	if not id then
		return
	end
	local m = load(q, id)

	leave(q, id, m)
	call('HSET', q.heads, k, id)
	enter(q, id, m, READY)
end

-- The message stops leading its key.
local function pass(q, id, m)
	if m.k and head(q, m.k) == id then
		call('HDEL', q.heads, m.k)
		advance(q, m.k)
	end
end

local function join(q, id, m)
	if head(q, m.k) or first_held(q, m.k) then
		enter(q, id, m, HELD)
	else
		call('HSET', q.heads, m.k, id)
		enter(q, id, m, READY)
	end
end

local function first_score(key)
	return tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
end

local function settle(q, id, m, t)
	local joins = m.k and head(q, m.k) ~= id

	if m.d > t or (joins and (first_score(q.delayed) or t + 1) <= t) then
		enter(q, id, m, DELAYED)
	elseif joins then
		join(q, id, m)
	else
		enter(q, id, m, READY)
	end
end

-- ---- Ends ----

-- The entry of an idempotency key: the id of the first message, until when it is remembered
-- (0 = while that message exists), and, in a strict queue, the digest of its payload, or ''.
local function read_key(q, key)
	return string.match(call('HGET', q.idem, key) or '', '^(%d+):(%d+):?(%x*)$')
end

-- A digest as the end of an entry.
local function digest_end(q, digest)
	return q.policy.strict == 1 and digest and digest ~= '' and ':' .. digest or ''
end

local function forget(q, id, m, remember)
	fates.message(q, id, m, 'gone')
	for _, field in ipairs({ id, id .. ':r', id .. ':e' }) do
		write('HDEL', q.msg, field)
	end
	write('ZREM', q.all, id)
	if m.e > 0 then
		write('ZREM', q.ttl, member(m, id))
	end
	if m.i and remember > 0 then
		local _, _, digest = read_key(q, m.i)

		write('HSET', q.idem, m.i, id .. ':' .. int(remember) .. digest_end(q, digest))
		write('ZADD', q.ends, remember, 'i:' .. m.i)
	elseif m.i then
		write('HDEL', q.idem, m.i)
	end
	count_prio(q, m.p, -1)
end

local function remembered(q, m, t)
	return m.i and t + q.policy.window or 0
end

local function finish(q, id, m, t)
	leave(q, id, m)
	pass(q, id, m)
	forget(q, id, m, remembered(q, m, t))
	q.done = q.done + 1
end

local function fail(q, m)
	m.x = math.min(m.x + 1, 65535)
	q.failed = q.failed + 1
end

-- What is kept of the failures of a message: engine/attempts.h has the bytes.
local MARK, KEPT, TEXT, FIXED = '\0attempt', 10, 256, 30
local FAILED, LAPSED, REFUSED, DEFERRED = 1, 2, 3, 4

-- Cuts the text at the end of a character.
local function cut(text)
	local n = TEXT

	if #text <= n then
		return text
	end
	while n > 0 and string.byte(text, n + 1) >= 0x80 and string.byte(text, n + 1) < 0xc0 do
		n = n - 1
	end
	return string.sub(text, 1, n)
end

-- The attempts that were kept, as bytes, and the last error.
local function read_attempts(text)
	local list, at = {}, 10

	if string.sub(text, 1, 8) ~= MARK then
		return list, text
	end
	for i = 1, string.byte(text, 9) do
		local size = FIXED + string.byte(text, at + 27) + struct.unpack('<I2', string.sub(text, at + 28, at + 29))

		list[i] = string.sub(text, at, at + size - 1)
		at = at + size
	end
	return list, string.sub(text, at)
end

-- Keeps the attempt that ends at t, before the message leaves its lease.
local function note_attempt(q, id, m, outcome, text, t)
	local list, last = read_attempts(call('HGET', q.msg, id .. ':e') or '')
	local owner, short = string.sub(m.o or '', 1, 128), cut(text)

	if #list >= KEPT then
		table.remove(list, 1)
	end
	list[#list + 1] = struct.pack('<I8I8I8I2BBI2', m.c, math.max(t - m.c, 0), m.t, m.a, outcome, #owner, #short) .. owner .. short
	call('HSET', q.msg, id .. ':e', MARK .. string.char(#list) .. table.concat(list) .. (text ~= '' and text or last))
end

local function die(q, id, m, reason, t)
	leave(q, id, m)
	call('ZREM', q.ttl, member(m, id))
	m.e = 0
	pass(q, id, m)
	m.d, m.r, m.g = t, reason, 0
	enter(q, id, m, DEAD)
	q.died = q.died + 1
end

local function most(q, m)
	return m.m > 0 and m.m or q.policy.max_attempts
end

-- ---- What falls due ----

local function due_of(key, t)
	local n = math.min(budget, 1000)

	if n <= 0 then
		return {}
	end
	local found = call('ZRANGEBYSCORE', key, '-inf', int(t), 'LIMIT', 0, n)

	budget = budget - #found
	return found
end

local function end_leases(q, t)
	for _, mem in ipairs(due_of(q.inprog, t)) do
		local id = id_of(mem)
		local m = load(q, id)
		local ended = m.u

		q.ended[#q.ended + 1] = id
		q.lapses = id
		fates.message(q, id, m, 'forget')
		note_attempt(q, id, m, LAPSED, '', ended)
		fail(q, m)
		if m.x >= most(q, m) then
			die(q, id, m, MAX_ATTEMPTS, now)
		else
			leave(q, id, m)
			m.d = ended
			settle(q, id, m, now)
		end
		q.lapses = nil
	end
end

local function end_ttls(q, t)
	for _, mem in ipairs(due_of(q.ttl, t)) do
		local id = id_of(mem)

		die(q, id, load(q, id), EXPIRED, now)
	end
end

local function promote(q, t)
	for _, mem in ipairs(due_of(q.delayed, t)) do
		local id = id_of(mem)
		local m = load(q, id)

		leave(q, id, m)
		if m.k and head(q, m.k) ~= id then
			join(q, id, m)
		else
			enter(q, id, m, READY)
		end
	end
end

local function retire_one(q, mem)
	local id = id_of(mem)

	finish(q, id, load(q, id), now)
	budget = budget - 1
end

local function retire(q, t)
	local p = q.policy

	if p.dlq_retention > 0 then
		for _, mem in ipairs(call('ZRANGEBYSCORE', q.dlq, '-inf', int(t - p.dlq_retention),
			'LIMIT', 0, math.max(0, math.min(budget, 1000)))) do
			retire_one(q, mem)
		end
	end
	if p.dlq_max > 0 then
		local over = math.min(call('ZCARD', q.dlq) - p.dlq_max, budget)

		for _, mem in ipairs(over > 0 and call('ZRANGE', q.dlq, 0, over - 1) or {}) do
			retire_one(q, mem)
		end
	end
end

local function forget_ends(q, t)
	for _, mem in ipairs(due_of(q.ends, t)) do
		local kind, name = string.sub(mem, 1, 1), string.sub(mem, 3)

		call('ZREM', q.ends, mem)
		if kind == 'r' then
			call('HDEL', q.results, name)
		elseif kind == 'o' then
			call('HDEL', q.ops, name)
		elseif kind == 'l' then
			fates.key(q, name)
		else
			local _, until_ = read_key(q, name)

			if until_ and until_ ~= '0' and tonumber(until_) <= t then
				call('HDEL', q.idem, name)
			end
		end
	end
end

local function tick(q, t)
	end_leases(q, t)
	end_ttls(q, t)
	promote(q, t)
	retire(q, t)
	forget_ends(q, t)
end

local function next_due(q)
	local best

	for _, key in ipairs({ q.inprog, q.ttl, q.delayed, q.ends }) do
		local score = first_score(key)

		best = score and (not best or score < best) and score or best
	end
	if q.policy.dlq_retention > 0 then
		local score = first_score(q.dlq)

		score = score and score + q.policy.dlq_retention
		best = score and (not best or score < best) and score or best
	end
	if q.policy.dlq_max > 0 and call('ZCARD', q.dlq) > q.policy.dlq_max then
		best = 0
	end
	return best and int(best) or ''
end

local function ready_count(q)
	local n = 0

	for _, p in ipairs(q.order) do
		n = n + call('ZCARD', q.pending[p])
	end
	return n
end

-- ---- Enqueue ----

local function depth(q)
	return ready_count(q) + call('ZCARD', q.delayed) + call('ZCARD', q.inprog) +
		call('ZCARD', q.held) + q.away[READY] + q.away[DELAYED] + q.away[HELD]
end

-- The bucket is stored as the moment at which it is full, as in core/bucket.h.
local function rate_wait(q, n, rate, burst)
	burst = burst > 0 and burst or rate
	local full = math.max(tonumber(call('HGET', q.meta, 'full') or '0'), now)
	local took = math.min(n, burst)
	local left = burst - (full - now) * rate / 1e6

	if left >= took then
		q.full = full + n * 1e6 / rate
		return 0
	end
	return math.ceil((took - left) * 1e6 / rate)
end

-- The id and the digest under an idempotency key, or nil.
local function known(q, key)
	local id, until_, digest = read_key(q, key)

	if id and (until_ == '0' or tonumber(until_) > now) then
		return id, digest
	end
end

local function read_put()
	local m = { queue = num(), id = arg(), p = num(), delay = num(), ad = num(), ttl = num(),
		m = num(), kp = num(), k = arg(), i = arg(), digest = arg() }

	m.record = arg()
	m.k = m.k ~= '' and m.k or nil
	m.i = m.i ~= '' and m.i or nil
	return m
end

local function accept(q, put)
	local m = { p = put.p, n = next_number(q), a = 0, x = 0, m = put.m, e = 0, g = 0, k = put.k,
		i = put.i, kp = put.kp, ac = now }
	local ttl = put.ttl > 0 and put.ttl or q.policy.ttl

	m.d = put.ad > 0 and put.ad or now + put.delay
	m.ad = put.ad > 0 and put.ad or m.d
	m.d = math.max(m.d, now)
	m.e = ttl > 0 and now + ttl or 0
	write('HSET', q.msg, put.id .. ':r', put.record)
	write('ZADD', q.all, m.n, put.id)
	count_prio(q, m.p, 1)
	if m.i then
		write('HSET', q.idem, m.i, put.id .. ':0' .. digest_end(q, put.digest))
	end
	if m.e > 0 then
		write('ZADD', q.ttl, m.e, member(m, put.id))
	end
	settle(q, put.id, m, now)
	return { put.id, m.n, m.ac, m.ad, m.e, most(q, m) }
end

-- The first message under the idempotency key of a put, also of this call, and whether the
-- queue is strict and that message had another payload.
local function find_first(q, put, waiting)
	local before, id, digest = waiting[put.i], nil, nil

	if before then
		id, digest = before.id, before.digest
	else
		id, digest = known(q, put.i)
	end
	return id, id and q.policy.strict == 1 and digest ~= '' and put.digest ~= '' and digest ~= put.digest
end

-- Checks all puts before anything changes: a call is accepted whole or not at all.
local function check_puts(queues, puts, limits)
	local waiting = {}

	for i, q in ipairs(queues) do
		local rate = q.policy.max_rate > 0 and q.policy.max_rate or limits.rate
		local burst = q.policy.max_rate > 0 and q.policy.burst or limits.burst
		local wait = rate > 0 and q.puts > 0 and q.lives == '' and not limits.known and
			rate_wait(q, q.puts, rate, burst) or 0

		if wait > 0 then
			return { 'rate', q.first, wait, rate }
		end
		waiting[i] = {}
		q.room = q.policy.max_depth > 0 and q.policy.max_depth or limits.depth
		q.room = q.room > 0 and q.room - depth(q) or math.huge
		q.idems = limits.idem > 0 and limits.idem - call('HLEN', q.idem) or math.huge
	end
	for i, put in ipairs(puts) do
		local q, other = queues[put.queue], nil

		if put.i then
			put.known, other = find_first(q, put, waiting[put.queue])
		end
		if other then
			return { 'body', i - 1 }
		elseif limits.known then
			put.moved = not put.known
		elseif not put.known and call('HEXISTS', q.msg, put.id) == 1 then
			put.again = true -- the answer of the first try was lost
		elseif is_away(q, not put.known and put.k) then
			return { 'move', i - 1 }
		elseif not put.known and (q.lives ~= '' or (is_late(q) and (put.k or put.i))) and
			not has_sequence(q, put.k) then
			put.moved = true
		elseif not put.known and put.record == '' then
			return { 'move', i - 1 } -- MOVE-2: its payload is elsewhere
		elseif not put.known then
			if q.policy.draining == 1 then
				return { 'drain', i - 1 }
			end
			if put.i and q.idems < 1 then
				return { 'idem', i - 1 }
			end
			if q.room < 1 then
				return { 'depth', i - 1 }
			end
			q.room = q.room - 1
			q.idems = q.idems - (put.i and 1 or 0)
			if put.i then
				waiting[put.queue][put.i] = put
			end
		end
	end
end

-- REDIS-4: the numbers of a caller's calls rise. Whether this call was here before.
local function was_here(queues, said)
	for _, q in ipairs(queues) do
		if said <= q.did then
			return true
		end
	end
end

-- Answers a call whose first answer was lost. Its messages may be gone by now. If the queue has
-- moved, some puts may not have been for this shard; if later calls followed, the call may have
-- been refused.
local function answer_again(queues, puts, said)
	local out = {}

	for i, put in ipairs(puts) do
		local q = queues[put.queue]
		local m, first = load(q, put.id), put.i and known(q, put.i)

		if first and first ~= put.id then
			out[i] = { first, most(q, put) }
		elseif m then
			out[i] = { put.id, m.n, m.ac, m.ad, m.e, most(q, m) }
		elseif q.epoch > 0 or said < q.did then
			return { 'unknown', i - 1 }
		else
			out[i] = { put.id, 0, now, put.ad > 0 and put.ad or now + put.delay, 0, most(q, put) }
		end
	end
	return { 'taken', out }
end

-- Stores the number of the call. The first enqueue of a caller removes callers that have not
-- called for CALLER_KEPT.
local function note_caller(q, said)
	local fields = q.did == 0 and call('HGETALL', q.meta) or {}

	for i = 1, #fields, 2 do
		if string.sub(fields[i], 1, 4) == 'did:' and tonumber(fields[i + 1]) < now - CALLER_KEPT then
			write('HDEL', q.meta, fields[i])
		end
	end
	write('HSET', q.meta, 'did:' .. caller, int(said))
end

local function enqueue(queues)
	local said = num()
	local limits = { depth = num(), rate = num(), burst = num(), idem = num(), known = num() == 1 }
	local n = num()
	local puts, out = {}, {}

	for i = 1, n do
		puts[i] = read_put()
		local q = queues[puts[i].queue]

		q.first = q.first or i - 1
		q.puts = (q.puts or 0) + 1
	end
	for _, q in ipairs(queues) do
		q.puts = q.puts or 0
	end
	if not limits.known and was_here(queues, said) then -- with `known` nothing changes
		return answer_again(queues, puts, said)
	end
	local refused = check_puts(queues, puts, limits)

	if refused then
		return refused
	end
	for i, put in ipairs(puts) do
		local q = queues[put.queue]

		if put.moved then
			out[i] = {}
		elseif put.known then
			out[i] = { put.known, most(q, put) }
		elseif put.again then
			local m = load(q, put.id)

			out[i] = { put.id, m.n, m.ac, m.ad, m.e, most(q, m) }
		else
			out[i] = accept(q, put)
			q.took = true
		end
	end
	for _, q in ipairs(queues) do
		if q.took then
			note_caller(q, said)
		end
		if q.full then
			write('HSET', q.meta, 'full', int(q.full))
		end
	end
	return { 'taken', out }
end

-- ---- Rows ----

local function row(q, id, m, with_error)
	local version, etag = fates.seen(q, id, m)
	local texts = with_error and call('HMGET', q.msg, id .. ':r', id .. ':e') or
		{ call('HGET', q.msg, id .. ':r') }

	return { id, m.s, m.p, m.d, m.n, m.a, m.x, most(q, m), m.t or 0, m.u or 0, m.c or 0, m.e,
		m.g, m.r or 0, m.ac, m.ad, texts[1] or '', texts[2] or '', version, etag,
		with_error and m.o or '', not with_error and fates.shown(q, id, m) or {} }
end

-- ---- Claim ----

-- The first ready message, without messages that the stream has just failed: `passed` counts
-- those.
local function best(q, stream, passed)
	for _, p in ipairs(q.order) do
		local mem = call('ZRANGE', q.pending[p], passed[p] or 0, passed[p] or 0)[1]

		while mem do
			local id = id_of(mem)
			local m = load(q, id)

			if not stream or m.f ~= stream or (m.w or 0) <= now then
				return id, m
			end
			passed.n, passed[p] = passed.n + 1, (passed[p] or 0) + 1
			passed.wait = math.min(passed.wait or SHUN_TIME, m.w - now)
			mem = call('ZRANGE', q.pending[p], passed[p], passed[p])[1]
		end
	end
end

local function over(q, m)
	if m.e > 0 and m.e <= now then
		return EXPIRED
	end
	return m.x >= most(q, m) and MAX_ATTEMPTS
end

local function spared(m)
	return m.g >= SPARED and SPARED or 0
end

local function grant(q, id, m, lease, stream, owner)
	leave(q, id, m)
	m.f, m.w, m.o = stream, nil, owner
	m.t = next_number(q)
	m.c, m.u = now, now + lease
	m.a = math.min(m.a + 1, 65535)
	m.g = HOLDS + spared(m)
	enter(q, id, m, LEASED)
end

local function claim(queues)
	local q = queues[1]
	local max, lease, bytes, op, flow, owner = num(), num(), num(), arg(), arg(), arg()
	local stream = flow ~= '0' and caller .. '.' .. flow or nil
	local rows, granted, total, ids = {}, {}, 0, call('HGET', q.ops, op)
	local passed = { n = 0 }

	if ids then -- the first answer was lost: answer the same again
		for id in string.gmatch(ids, '%d+') do
			local m = load(q, id)

			if m and m.s == LEASED and m.u > now then
				rows[#rows + 1] = row(q, id, m)
			end
		end
		return { rows, 0, 0 }
	end
	lease = lease > 0 and lease or q.policy.lease
	while #rows < max and q.policy.paused == 0 do
		local id, m = best(q, stream, passed)
		local reason = m and over(q, m)

		if not m or (reason and budget <= 0) then
			q.woken = q.woken or reason -- the rest waits for the next call
			break
		end
		if reason then
			budget = budget - 1
			die(q, id, m, reason, now)
		else
			local size = call('HSTRLEN', q.msg, id .. ':r')

			if #rows > 0 and bytes > 0 and total + size > bytes then
				break
			end
			grant(q, id, m, lease, stream, owner ~= '' and owner or nil)
			total = total + size
			rows[#rows + 1] = row(q, id, m)
			granted[#granted + 1] = id
		end
	end
	if #granted > 0 then
		call('HSET', q.ops, op, table.concat(granted, ' '))
		call('ZADD', q.ends, now + OP_KEPT, 'o:' .. op)
	end
	return { rows, passed.n, passed.wait or 0 }
end

-- ---- Settling ----

-- The message that is leased with that token at time t.
local function held(q, id, token, t)
	local m = load(q, id)

	if not m or is_set_aside(q, id) then
		return nil, ENOTFOUND
	end
	if m.s ~= LEASED or m.u <= t then
		return nil, ELEASE
	end
	if token == 0 and q.policy.require_lease == 1 or token ~= 0 and token ~= m.t then
		return nil, ELEASE
	end
	return m
end

local function backoff(p, attempt)
	local delay = 0

	if p.kind == 0 then
		delay = p.base * 2 ^ math.min(attempt - 1, 60)
	elseif p.kind == 1 then
		delay = p.base * attempt
	elseif p.kind == 2 then
		delay = p.base
	end
	delay = math.min(delay, p.max)
	return p.jitter == 1 and math.floor(dice * (delay + 1)) or delay
end

local settles = {}

-- Makes a verb of a step on a message that is leased with the item's token at time t.
local function on_lease(step)
	return function(q, it, t)
		local m, rc = held(q, it.id, it.token, t)

		return m and step(q, it, m, t) or { rc }
	end
end

settles.ack = on_lease(function(q, it, m)
	local claimed = m.c

	if m.kp > 0 then
		write('HSET', q.results, it.id, (it.has_text == 1 and '1' or '0') .. it.text)
		write('ZADD', q.ends, now + m.kp, 'r:' .. it.id)
	end
	finish(q, it.id, m, now)
	return { OK, now, 0, claimed }
end)

settles.nack = on_lease(function(q, it, m)
	local claimed, delay, stream = m.c, it.time, m.f

	fates.message(q, it.id, m, 'commit')
	if it.dead == 1 or it.defer == 0 then
		note_attempt(q, it.id, m, it.dead == 1 and REFUSED or FAILED, it.text or '', now)
		fail(q, m)
	elseif it.text and it.text ~= '' then
		note_attempt(q, it.id, m, DEFERRED, it.text, now)
	end
	if it.dead == 1 or (it.defer == 0 and m.x >= most(q, m)) then
		die(q, it.id, m, it.dead == 1 and REJECTED or MAX_ATTEMPTS, now)
		return { OK, now, 1, claimed }
	end
	if delay < 0 then
		delay = it.defer == 1 and 0 or backoff(q.policy, m.x)
	end
	leave(q, it.id, m)
	m.d, m.g = now + delay, m.g % SPARED
	if stream and it.defer == 0 then
		m.f, m.w = stream, now + SHUN_TIME
	end
	settle(q, it.id, m, now)
	return { OK, m.d, 0, claimed }
end)

-- With a text it has a checkpoint: has_text is where its record ends and its payload begins.
settles.extend = on_lease(function(q, it, m)
	if it.has_text > 0 then
		fates.checkpoint(q, it.id, m, it.text, it.has_text)
	end
	m.u = now + (it.time > 0 and it.time or q.policy.lease)
	m.g = HOLDS + EXTENDED
	call('ZADD', q.inprog, m.u, member(m, it.id))
	notify_stream(q, it.id, m, m.u - now)
	save(q, it.id, m)
	return { OK, m.u, 0, 0 }
end)

-- With `defer` the message was delivered to a stream that has ended: ledger_spare.
settles['return'] = on_lease(function(q, it, m, t)
	if it.defer == 1 then
		if m.g ~= HOLDS or t - m.c > SPARE_TIME then
			return { ELEASE }
		end
		m.g = m.g + SPARED
	end
	fates.message(q, it.id, m, 'forget')
	leave(q, it.id, m)
	m.a = math.max(m.a - 1, 0)
	settle(q, it.id, m, now)
	return { OK, now, 0, 0 }
end)

settles.aside = on_lease(function(q, it, m)
	fates.message(q, it.id, m, 'forget')
	leave(q, it.id, m)
	call('ZREM', q.ttl, member(m, it.id))
	m.e = 0
	pass(q, it.id, m)
	m.a, m.d, m.g = math.max(m.a - 1, 0), now, 0
	enter(q, it.id, m, DAMAGED)
	return { OK, now, 0, 0 }
end)

function settles.redrive(q, it)
	local m = load(q, it.id)

	if not m or m.s ~= DEAD or is_set_aside(q, it.id) then
		return { ENOTFOUND }
	end
	if is_away(q, m.k) or (m.k and (q.apart or is_elsewhere(q)) and not has_sequence(q, m.k)) then
		return { ECONFLICT }
	end
	leave(q, it.id, m)
	m.n = next_number(q)
	m.d, m.x, m.r = now, 0, nil
	call('ZADD', q.all, m.n, it.id)
	settle(q, it.id, m, now)
	return { OK, now, 0, 0 }
end

function settles.delete(q, it)
	local m = load(q, it.id)

	if not m or is_set_aside(q, it.id) then
		return { ENOTFOUND }
	end
	if m.s == LEASED then
		return { ELEASE }
	end
	finish(q, it.id, m, now)
	return { OK, now, 0, 0 }
end

local function items(queues)
	local q, out = queues[1], {}
	local t, apart, n = now - num(), num(), num()

	q.apart = apart == 1
	for i = 1, n do
		out[i] = settles[verb](q, { id = arg(), token = num(), time = num(), defer = num(),
			dead = num(), has_text = num(), text = arg() }, t)
	end
	return out
end

-- ---- Looking ----

local function get(queues)
	local q, id = queues[1], arg()
	local m = load(q, id)

	return m and row(q, id, m, true) or {}
end

-- Ready messages of all priorities, in the order of delivery.
local function peek(queues)
	local q, max, rows = queues[1], num(), {}

	for _, p in ipairs(q.order) do
		if #rows < max then
			for _, mem in ipairs(call('ZRANGE', q.pending[p], 0, max - #rows - 1)) do
				local id = id_of(mem)

				rows[#rows + 1] = row(q, id, load(q, id), true)
			end
		end
	end
	return rows
end

local function watch(queues)
	return queues[1].policy.paused == 0 and peek(queues) or {}
end

local function list_dead(q, cursor, max)
	local m = cursor ~= '0' and load(q, cursor)
	local rank = m and m.s == DEAD and call('ZRANK', q.dlq, member(m, cursor))
	local first = rank and rank + 1 or 0
	local rows, mems = {}, call('ZRANGE', q.dlq, first, first + max - 1)

	for i, mem in ipairs(mems) do
		local id = id_of(mem)

		rows[i] = row(q, id, load(q, id), true)
	end
	return { call('ZCARD', q.dlq) > first + #mems and rows[#rows][1] or '0', rows }
end

-- The sorted sets with the messages of a state; for damaged messages the set.
local function sets_of(q, state)
	local one = { [DELAYED] = q.delayed, [LEASED] = q.inprog, [HELD] = q.held, [DAMAGED] = q.aside }
	local sets = { one[state] }

	for _, p in ipairs(state == READY and q.order or {}) do
		sets[#sets + 1] = q.pending[p]
	end
	return sets
end

local function count_of(q, sets)
	local n = q.batch and call('ZCARD', q.taken) or 0

	for _, key in ipairs(sets) do
		n = n + call(key == q.aside and 'SCARD' or 'ZCARD', key)
	end
	return n
end

-- Ids of a state that no sorted set has: damaged messages, and messages set aside.
local function unnumbered(q, state)
	local ids = state == DAMAGED and call('SMEMBERS', q.aside) or {}

	for _, mem in ipairs(q.batch and call('ZRANGE', q.taken, 0, -1) or {}) do
		ids[#ids + 1] = string.match(mem, '^m:(%d+)$')
	end
	return ids
end

-- { number, id } of all messages of a state with a number above the cursor, in order; nil if
-- there are more than `most`.
local function all_of(q, state, cursor, most)
	local sets, found = sets_of(q, state), {}

	if count_of(q, sets) > most then
		return nil
	end
	for _, key in ipairs(state ~= DAMAGED and sets or {}) do
		for _, mem in ipairs(call('ZRANGE', key, 0, -1)) do
			local n, id = string.match(mem, '(%d+):(%d+)$')

			found[#found + 1] = tonumber(n) > cursor and { tonumber(n), id } or nil
		end
	end
	for _, id in ipairs(unnumbered(q, state)) do
		local m = load(q, id)

		found[#found + 1] = m and m.s == state and m.n > cursor and { m.n, id } or nil
	end
	table.sort(found, function(a, b)
		return a[1] < b[1]
	end)
	return found
end

-- A page by number; the cursor is the last number visited. A few messages of a state come from
-- the sets of that state, many from a scan of all messages.
local function list(queues)
	local q, state, cursor, max, scan = queues[1], num(), arg(), num(), num()

	if state == DEAD then
		return list_dead(q, cursor, max)
	end
	local rows, last = {}, cursor
	local few = state ~= 0 and all_of(q, state, tonumber(cursor), 8 * scan)

	if few then
		for i = 1, math.min(#few, max) do
			rows[i] = row(q, few[i][2], load(q, few[i][2]), true)
		end
		return { #few > max and int(few[max][1]) or '0', rows }
	end
	local found = call('ZRANGEBYSCORE', q.all, '(' .. cursor, '+inf', 'WITHSCORES', 'LIMIT', 0, scan)

	for i = 1, #found, 2 do
		local m = load(q, found[i])

		if #rows == max then
			return { last, rows }
		end
		if state == 0 or m.s == state then
			rows[#rows + 1] = row(q, found[i], m, true)
		end
		last = int(m.n)
	end
	return { #found == 2 * scan and last or '0', rows }
end

local function result(queues)
	local q, id = queues[1], arg()
	local text = call('HGET', q.results, id)

	if text then
		return { 1, call('ZSCORE', q.ends, 'r:' .. id) or call('HGET', q.msg, id .. ':u'), text }
	end
	return { call('HEXISTS', q.msg, id) == 1 and 2 or 0 }
end

local function stats(queues)
	local q, oldest = queues[1], nil
	local counts = call('HMGET', q.meta, 'locks', 'leases', 'states')

	for _, p in ipairs(q.order) do
		local score = first_score(q.pending[p])

		oldest = score and (not oldest or score < oldest) and score or oldest
	end
	return { ready_count(q) + q.away[READY], call('ZCARD', q.delayed) + q.away[DELAYED],
		call('ZCARD', q.inprog), call('ZCARD', q.held) + q.away[HELD],
		call('ZCARD', q.dlq) + q.away[DEAD], call('SCARD', q.aside),
		oldest or -1, q.policy.warn_depth, q.policy.paused + 2 * (q.policy.draining or 0), call('HLEN', q.heads),
		call('HLEN', q.idem), call('HLEN', q.results), tonumber(counts[1] or 0),
		tonumber(counts[2] or 0), tonumber(counts[3] or 0) }
end

-- ---- Queues as a whole ----

local function purge_one(q, id, m)
	leave(q, id, m)
	pass(q, id, m)
	forget(q, id, m, remembered(q, m, now))
end

-- Purges a slice of the messages that were accepted before the purge began (limit '0' = now),
-- by number. The next slice begins after the last number visited. Leased and dead messages
-- stay.
local function purge(queues)
	local q, n, last, limit, max = queues[1], 0, arg(), arg(), num()

	if q.batch then
		return { -1 }
	end
	limit = limit ~= '0' and limit or int(counter(q))
	local found = call('ZRANGEBYSCORE', q.all, '(' .. last, limit, 'WITHSCORES', 'LIMIT', 0, max)

	for i = 1, #found, 2 do
		local m = load(q, found[i])

		if m.s == READY or m.s == DELAYED or m.s == HELD then
			purge_one(q, found[i], m)
			n = n + 1
		end
		last = int(found[i + 1])
	end
	return { n, #found == 2 * max and last or '0', limit }
end

local function policy(queues)
	local q, text = queues[1], arg()

	if text ~= '' then
		call('HSET', q.meta, 'policy', text)
		q.policy = read_policy(text)
		q.woken, q.changed = true, true
	end
	return call('HGET', q.meta, 'policy') or ''
end

-- Changes only these settings, so that no change of another one is lost. Their words are the 16th and the
-- 18th; -1: the word stays.
local function pause(queues)
	local q, paused, draining, words = queues[1], arg(), arg(), {}

	for word in string.gmatch(q.has_policy or ARGV[6], '%S+') do
		words[#words + 1] = word
	end
	words[16] = paused ~= '-1' and paused or words[16]
	if draining ~= '-1' then
		words[17] = words[17] or '0'
		words[18] = draining
	end
	local text = table.concat(words, ' ')

	call('HSET', q.meta, 'policy', text)
	q.policy = read_policy(text)
	q.woken, q.changed = true, true
	return text
end

-- Whether the queue has been on another shard, or is on its way. Then its mark and the numbers
-- of its batches must stay.
local function has_moved(q)
	if q.epoch > 0 or q.batch then
		return true
	end
	for _, field in ipairs(call('HKEYS', q.meta)) do
		if string.sub(field, 1, 6) == 'given:' then
			return true
		end
	end
end

-- Deletes all keys of the queue except the counter, so that the tokens of a later queue with
-- the same name are higher.
local function drop_keys(q)
	for _, name in ipairs(names) do
		if name ~= 'counter' then
			call('DEL', q[name])
		end
	end
	q.prio_count, q.changed, q.woken = {}, false, false
end

-- Deletes a slice of the queue's messages in any state, and then the queue. Returns { deleted, 1
-- if there are more }, { -1 } if the queue has moved, { -2, its messages } if it is not empty.
local function forget_queue(queues)
	local q, force, max = queues[1], num() == 1, num()
	local found = call('ZRANGE', q.all, 0, max - 1)

	if has_moved(q) then
		return { -1 }
	elseif #found > 0 and not force then
		return { -2, call('ZCARD', q.all) }
	end
	for _, id in ipairs(found) do
		local m = load(q, id)

		leave(q, id, m)
		pass(q, id, m)
		forget(q, id, m, 0)
	end
	if call('ZCARD', q.all) > 0 then
		return { #found, 1 }
	end
	drop_keys(q)
	return { #found, 0 }
end

local function nothing()
	return 0
end

local verbs = { enqueue = enqueue, claim = claim, ack = items, nack = items, extend = items,
	['return'] = items, aside = items, redrive = items, delete = items, get = get, peek = peek,
	watch = watch, list = list, result = result, stats = stats, purge = purge, policy = policy,
	pause = pause, forget = forget_queue, tick = nothing }
