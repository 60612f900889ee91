-- locks.lua - lock keys, and documents of lock keys and messages: the rules LOCK-1 to LOCK-8 of
-- core/locks/locks.h.
--
-- Everything is in the hash msg of its queue. In `.locks`, `l:<key>` has the fields of a key;
-- its name is in `all`, ordered by name, and `l:<key>` is in `ends` with its next due time. In
-- any other queue `<id>:s` is the state of a message; the message has `st` then. `d:<etag>` and
-- `d:<etag>:p` are the record of a document: the part before its payload, and the payload.
--
-- A key: t token, u until, w owner, x transaction ('' = made of the token), o the end of the
-- lease was handled, f the key did not exist before this lease, v version, a when the version
-- was committed, kn known until, h hidden, hs hiding is staged, hd the staged value of h, op the
-- last op that changed it, c what that op counted, docs: n name, e etag, at when it was put, s
-- and sat the same of the staged document, r its removal is staged, f it came from another
-- shard, and its record is under the etag f. Documents staged for a message end with the lease.

do

local KNOWN = 86400e6 -- LOCK-8
local DOCS_MAX = 65
local LISTED = 65536 -- bytes; a list leaves larger payloads out
local PAGE = 4 * 1048576 -- bytes of documents in one answer
local why = { held = 1, known = 2, none = 3, expired = 4, fence = 5, txn_missing = 6,
	txn_other = 7, version = 8, etag = 9, too_many = -1, away = -2, moved = -3 }

local function read_ask()
	local ask = { key = arg(), id = arg(), t = now - num(), name = arg(), owner = arg(),
		token = num(), fence = num(), txn = arg(), of_token = arg(), ttl = num(),
		if_version = num(), if_etag = num() }

	for flag in string.gmatch(arg(), '%S+') do
		ask[flag] = true
	end
	ask.op, ask.head, ask.payload = arg(), arg(), arg()
	return ask
end

-- ---- Documents ----

local function doc_of(lock, name)
	for _, doc in ipairs(lock.docs) do
		if doc.n == name then
			return doc
		end
	end
end

-- The etag and time of a document: with `staged` for the holder, otherwise for all.
local function seen(doc, staged)
	if staged and (doc.s or doc.r) then
		return doc.s, doc.sat
	end
	return doc.e, doc.at
end

local function is_staged(lock)
	for _, doc in ipairs(lock.docs) do
		if doc.s or doc.r then
			return true
		end
	end
	return lock.hs
end

local function has_state(lock)
	for _, doc in ipairs(lock.docs) do
		if doc.e then
			return true
		end
	end
end

local function drop(q, etag)
	if etag then
		call('HDEL', q.msg, 'd:' .. int(etag), 'd:' .. int(etag) .. ':p')
	end
end

local function drop_kept(q, doc)
	drop(q, doc.f or doc.e)
	doc.f = nil
end

local function unstage(lock)
	local docs = {}

	for _, doc in ipairs(lock.docs) do
		doc.s, doc.sat, doc.r = nil, nil, nil
		docs[#docs + 1] = doc.e and doc
	end
	lock.docs, lock.hs, lock.hd = docs, nil, nil
end

local function commit(q, lock, t)
	if not is_staged(lock) then
		return
	end
	for _, doc in ipairs(lock.docs) do
		if doc.s or doc.r then
			drop_kept(q, doc)
			doc.e, doc.at = doc.s, doc.sat
		end
	end
	if lock.hs then
		lock.h = lock.hd
	end
	unstage(lock)
	lock.v, lock.a = lock.v + 1, t
end

local function rollback(q, lock)
	for _, doc in ipairs(lock.docs) do
		drop(q, doc.s)
	end
	unstage(lock)
end

-- ---- Keys ----

local function fresh()
	return { v = 0, a = 0, docs = {} }
end

local function read_lock(q, field)
	local text = call('HGET', q.msg, field)

	return text and cmsgpack.unpack(text) or nil
end

local function write_lock(q, field, lock)
	q.changed = true
	return call('HSET', q.msg, field, cmsgpack.pack(lock))
end

local function count(q, what, by)
	call('HINCRBY', q.meta, what, by)
end

local function is_leased(lock)
	return lock.t and not lock.o
end

local function is_held(lock)
	return is_leased(lock) and lock.u > now
end

local function exists(lock)
	return has_state(lock) or is_held(lock) or (lock.kn or 0) > now or
		(is_leased(lock) and lock.u + KNOWN > now)
end

local function save_key(q, key, lock, was_leased)
	local due = is_leased(lock) and lock.u or not has_state(lock) and lock.kn

	if write_lock(q, 'l:' .. key, lock) == 1 then
		call('ZADD', q.all, 0, key)
		count(q, 'locks', 1)
	end
	if due then
		call('ZADD', q.ends, due, 'l:' .. key)
	else
		call('ZREM', q.ends, 'l:' .. key)
	end
	if was_leased and not is_leased(lock) then
		count(q, 'leases', -1)
		q.freed[#q.freed + 1] = key
	elseif not was_leased and is_leased(lock) then
		count(q, 'leases', 1)
	end
end

-- The key is due: its lease has ended (LOCK-2), or it can be forgotten (LOCK-8).
function fates.key(q, key)
	local lock = read_lock(q, 'l:' .. key)

	if is_leased(lock) then
		rollback(q, lock)
		lock.o, lock.kn = true, lock.u + KNOWN
		save_key(q, key, lock, true)
	else
		call('HDEL', q.msg, 'l:' .. key)
		call('ZREM', q.all, key)
		count(q, 'locks', -1)
		q.changed = true
	end
end

-- ---- The state of a message (LOCK-7) ----

function fates.message(q, id, m, fate)
	if not m.st then
		return
	end
	local lock = read_lock(q, id .. ':s')

	if fate == 'commit' then
		commit(q, lock, now)
	else
		rollback(q, lock)
	end
	if fate == 'gone' or (lock.v == 0 and #lock.docs == 0) then
		for _, doc in ipairs(lock.docs) do
			drop_kept(q, doc)
		end
		call('HDEL', q.msg, id .. ':s')
		count(q, 'states', -1)
		m.st = nil
	else
		write_lock(q, id .. ':s', lock)
	end
end

-- LOCK-12: the text becomes the state of the message, and is committed. n bytes of it are the head. The caller saves m.
function fates.checkpoint(q, id, m, text, n)
	local lock = m.st and read_lock(q, id .. ':s') or fresh()
	local doc = doc_of(lock, '')

	if not doc then
		doc = { n = '' }
		lock.docs[#lock.docs + 1] = doc
	end
	drop(q, doc.s)
	doc.s, doc.sat, doc.r = next_number(q), now, nil
	call('HSET', q.msg, 'd:' .. int(doc.s), string.sub(text, 1, n),
		'd:' .. int(doc.s) .. ':p', string.sub(text, n + 1))
	commit(q, lock, now)
	write_lock(q, id .. ':s', lock)
	if not m.st then
		m.st = 1
		count(q, 'states', 1)
	end
end

-- Version and etag of a message's state, for the answer of a claim.
function fates.seen(q, id, m)
	local lock = m.st and read_lock(q, id .. ':s')
	local doc = lock and doc_of(lock, '')

	return lock and lock.v or 0, doc and doc.e or 0
end

-- ---- Answers ----

local function tell(ask, lock, staged, more)
	local doc = lock and doc_of(lock, ask.name)
	local etag = doc and seen(doc, staged)

	lock = lock or fresh()
	return { more.why or 0, lock.v + (staged and is_staged(lock) and 1 or 0), etag or 0, lock.a,
		more.u or 0, more.t or 0, more.x or '', more.w or '', lock.h and 1 or 0,
		more.c or 0, more.docs or {} }
end

local function refuse(ask, lock, no)
	return tell(ask, lock, false, { why = no, u = no == why.held and lock and lock.u })
end

-- The etag under which a document's record is stored.
local function kept_at(lock, etag)
	for _, doc in ipairs(lock.docs) do
		if doc.e == etag and doc.f then
			return doc.f
		end
	end
	return etag
end

local function document(q, lock, name, staged, etag, at, most)
	local field = 'd:' .. int(kept_at(lock, etag))
	local fits = most == nil or call('HSTRLEN', q.msg, field .. ':p') <= most

	return { name, lock.v + (staged and is_staged(lock) and 1 or 0), etag, lock.a, at,
		call('HGET', q.msg, field) or '', fits and call('HGET', q.msg, field .. ':p') or '' }
end

-- The state of a message that a claim shows: small ones.
function fates.shown(q, id, m)
	local lock = m.st and read_lock(q, id .. ':s')
	local doc = lock and doc_of(lock, '')
	local found = doc and doc.e and document(q, lock, '', false, doc.e, doc.at, LISTED)

	return found and found[7] ~= '' and { found } or {}
end

-- ---- Holders ----

-- The key (or the state of a message), the lease that counts for it, and the message.
local function open(q, ask)
	if ask.id == '' then
		local lock = read_lock(q, 'l:' .. ask.key)

		return lock, lock or {}
	end
	local m = load(q, ask.id)

	-- in a message, o is the owner of the lease, not its end
	return m and m.st and read_lock(q, ask.id .. ':s') or nil, { t = m and m.t, u = m and m.u }, m
end

local function is_key_aside(q, key)
	return q.batch and call('ZSCORE', q.taken, 'l:' .. key)
end

-- MOVE-5 of engine/move.h: whether the caller must ask where the queue lives. A key without a
-- state is not needed here any more; the holder of a key that is set aside got it elsewhere.
local function is_moved(q, ask, lock, m)
	if not is_elsewhere(q) then
		return false
	elseif ask.id ~= '' then
		return not m or (ask.token ~= 0 and is_set_aside(q, ask.id))
	elseif ask.token ~= 0 and is_key_aside(q, ask.key) then
		return true
	end
	return not (lock and (has_state(lock) or is_leased(lock)))
end

-- Why the holder may not change the key, or nil.
local function check(ask, lock, lease, without_txn)
	if ask.token == 0 or ask.token ~= lease.t then
		return why.none
	elseif lease.o or lease.u <= ask.t then
		return why.expired
	elseif ask.fence ~= 0 and ask.fence ~= lease.t then
		return why.fence
	elseif ask.txn == '' then
		return not without_txn and why.txn_missing or nil
	elseif ask.id == '' and ask.txn ~= (lock.x ~= '' and lock.x or ask.of_token) then
		return why.txn_other
	end
end

local function check_match(ask, lock, name)
	local doc = doc_of(lock, name)

	if ask.if_version >= 0 and ask.if_version ~= lock.v + (is_staged(lock) and 1 or 0) then
		return why.version
	elseif ask.if_etag ~= 0 and ask.if_etag ~= (doc and seen(doc, true)) then
		return why.etag
	end
end

-- Makes a verb of a step of the holder. The step changes the key, or returns why not, or
-- (second) that there is nothing to change. If this op changed the key last, its answer was
-- lost: the verb answers again and changes nothing.
local function holder(step)
	return function(queues)
		local q, ask = queues[1], read_ask()
		local lock, lease, m = open(q, ask)

		if is_moved(q, ask, lock, m) then
			return refuse(ask, lock, why.moved)
		end
		if not (lock and lock.op == ask.op) then
			local no = check(ask, lock, lease, verb == 'keepalive' or ask.undo)
			local same

			if no then
				return refuse(ask, lock, no)
			end
			lock = lock or fresh()
			lock.c = nil
			no, same = step(q, ask, lock, m)
			if no then
				return refuse(ask, lock, no)
			end
			if not same then
				lock.op = ask.op
			end
			if m and not same then
				write_lock(q, ask.id .. ':s', lock)
			elseif not same then
				save_key(q, ask.key, lock, true)
			end
			if m and not same and not m.st then
				m.st = 1
				save(q, ask.id, m)
				count(q, 'states', 1)
			end
		end
		return tell(ask, lock, true, { u = lease.u, c = lock.c })
	end
end

verbs.keepalive = holder(function(_, ask, lock)
	lock.u = ask.t + ask.ttl
end)

local function let_go(lock, known)
	lock.kn = known
	lock.t, lock.u, lock.w, lock.x, lock.f = nil, nil, nil, nil, nil
end

verbs.release = holder(function(q, ask, lock, m)
	if m and not is_staged(lock) then
		return nil, true
	end
	if ask.rollback then
		rollback(q, lock)
	else
		commit(q, lock, ask.t)
	end
	if not m then
		let_go(lock, ask.undo and lock.f and ask.t or ask.t + KNOWN)
	end
end)

verbs.state_put = holder(function(q, ask, lock)
	local doc, no, attached = doc_of(lock, ask.name), check_match(ask, lock, ask.name), 0

	for _, each in ipairs(lock.docs) do
		attached = attached + (each.n ~= '' and 1 or 0)
	end
	if no then
		return no
	elseif ask.absent and doc and seen(doc, true) then
		return why.known
	elseif not doc and ask.name ~= '' and attached >= DOCS_MAX - 1 then
		return why.too_many
	end
	if not doc then
		doc = { n = ask.name }
		lock.docs[#lock.docs + 1] = doc
	end
	drop(q, doc.s)
	doc.s, doc.sat, doc.r = next_number(q), now, nil
	call('HSET', q.msg, 'd:' .. int(doc.s), ask.head, 'd:' .. int(doc.s) .. ':p', ask.payload)
end)

verbs.state_remove = holder(function(q, ask, lock)
	local no, n, docs = check_match(ask, lock, ask.name), 0, {}

	if no then
		return no
	end
	for _, doc in ipairs(lock.docs) do
		if (ask.all and doc.n ~= '' or not ask.all and doc.n == ask.name) and seen(doc, true) then
			drop(q, doc.s)
			doc.s, doc.sat, doc.r = nil, nil, doc.e and true
			n = n + 1
		end
		docs[#docs + 1] = (doc.e or doc.s) and doc
	end
	lock.docs, lock.c = docs, n
	return nil, n == 0
end)

verbs.state_meta = holder(function(_, ask, lock)
	local no = check_match(ask, lock, '')

	if no then
		return no
	end
	lock.hs, lock.hd = true, ask.hidden
end)

function verbs.acquire(queues)
	local q, ask = queues[1], read_ask()
	local lock = read_lock(q, 'l:' .. ask.key)
	local known = lock and exists(lock)
	local was_leased = lock and is_leased(lock)

	if not (lock and is_held(lock) and lock.op == ask.op) then -- otherwise its answer was lost
		if is_key_aside(q, ask.key) then
			return refuse(ask, lock, why.away)
		elseif is_moved(q, ask, lock) or (is_late(q) and not ask.waited and not was_leased) then
			return refuse(ask, lock, why.moved) -- MOVE-5: a former shard may have it set aside
		elseif ask.waited or (lock and is_held(lock)) then
			return refuse(ask, lock, why.held)
		elseif known and ask.absent then
			return refuse(ask, lock, why.known)
		end
		lock = lock or fresh()
		rollback(q, lock)
		lock.t, lock.u, lock.w, lock.x = next_number(q), now + ask.ttl, ask.owner, ask.txn
		lock.o, lock.f, lock.op = nil, not known or nil, ask.op
		save_key(q, ask.key, lock, was_leased)
	end
	return tell(ask, lock, false, { t = lock.t, u = lock.u, x = lock.x })
end

-- ---- Looking ----

-- Makes a verb of a step that returns the documents to show: as the holder sees them if the op
-- has a token, otherwise the committed ones.
local function reader(step)
	return function(queues)
		local q, ask = queues[1], read_ask()
		local lock, lease, m = open(q, ask)
		local staged = ask.token ~= 0
		local no = is_moved(q, ask, lock, m) and why.moved or staged and check(ask, lock, lease, true)

		if no then
			return refuse(ask, lock, no)
		end
		return tell(ask, lock, staged, step(q, ask, lock, staged, lease))
	end
end

verbs.state_get = reader(function(q, ask, lock, staged, lease)
	local doc, docs = lock and doc_of(lock, ask.name), {}

	if doc then
		local etag, at = seen(doc, staged)

		docs[1] = etag and document(q, lock, ask.name, staged, etag, at)
	end
	return { u = lease.u, docs = docs }
end)

verbs.attachments = reader(function(q, ask, lock, staged)
	local docs = {}

	for _, doc in ipairs(lock and lock.docs or {}) do
		local etag, at = seen(doc, staged)

		docs[#docs + 1] = doc.n ~= '' and etag and
			document(q, lock, doc.n, staged, etag, at, LISTED) or nil
	end
	return { docs = docs }
end)

function verbs.describe(queues)
	local q, ask = queues[1], read_ask()
	local lock, lease, m = open(q, ask)

	if is_moved(q, ask, lock, m) then
		return refuse(ask, lock, why.moved)
	end
	return tell(ask, lock, false, is_held(lease) and
		{ t = lease.t, u = lease.u, x = ask.id == '' and lease.x, w = ask.id == '' and lease.w } or {})
end

-- Keys with names after `after`: those with a document, or with `leased` = 1 those that are held,
-- with the token instead of the etag. A page that ends early returns the last name visited.
function verbs.keys(queues)
	local q, after, max, scan, leased = queues[1], arg(), num(), num(), num() == 1
	local names = call('ZRANGEBYLEX', q.all, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0,
		scan + 1)
	local docs, bytes = {}, 0

	for i, name in ipairs(names) do
		if i > scan or #docs == max or bytes >= PAGE then
			return { 1, docs }
		end
		local lock = read_lock(q, 'l:' .. name)
		local doc = doc_of(lock, '')

		if leased and is_held(lock) then
			docs[#docs + 1] = { name, lock.v, lock.t, lock.a, 0, '', '' }
		elseif not leased and doc and doc.e and not lock.h then
			docs[#docs + 1] = document(q, lock, name, false, doc.e, doc.at)
			bytes = bytes + #docs[#docs][7]
		elseif i == scan then
			docs[#docs + 1] = { name, lock.v, 0, lock.a, 0, '', '' }
		end
	end
	return { 0, docs }
end
-- ---- Moves: see move.lua ----

-- The number of documents of a key ('l:<key>') or of the state of a message ('<id>:s').
function fates.documents(q, field)
	local lock = read_lock(q, field)

	return lock and #lock.docs or 0
end

-- One of the documents as a row, and whether its key is hidden.
function fates.document(q, field, which)
	local lock = read_lock(q, field)
	local doc = lock.docs[which]

	return document(q, lock, doc.n, false, doc.e, doc.at), lock.h and 1 or 0
end

-- Ends the lease, like a release that commits nothing. Returns false if the key has no lease.
function fates.release(q, key)
	local lock = read_lock(q, 'l:' .. key)

	if not is_leased(lock) then
		return false
	end
	rollback(q, lock)
	let_go(lock, now + KNOWN)
	lock.op = nil -- the last change of the holder is undone
	save_key(q, key, lock, true)
	return true
end

-- Whether the key can move. A key without a state, whose queue lives elsewhere, is not needed
-- here any more.
function fates.can_move(q, key)
	local lock = read_lock(q, 'l:' .. key)
	local idle = not is_leased(lock)

	if idle and not has_state(lock) and q.lives ~= '' then
		fates.gone(q, key)
	end
	return idle and has_state(lock)
end

-- Forgets the key with its documents.
function fates.gone(q, key)
	for _, doc in ipairs(read_lock(q, 'l:' .. key).docs) do
		drop_kept(q, doc)
	end
	call('HDEL', q.msg, 'l:' .. key)
	call('ZREM', q.all, key)
	call('ZREM', q.ends, 'l:' .. key)
	count(q, 'locks', -1)
	q.changed = true
end

-- Makes room for a state of that version. A key that is leased, or as new, stays; an older
-- state is left from a batch that was given up.
function fates.makes_room(q, key, version)
	local lock = read_lock(q, 'l:' .. key)

	if lock and (is_leased(lock) or (has_state(lock) and lock.v >= version)) then
		return false
	elseif lock and has_state(lock) then
		fates.gone(q, key)
	end
	return true
end

-- Accepts a document from another shard, of a key, or with `id` of a message. `given`: version,
-- its time, hidden, and name, etag, time, head and payload of the document.
function fates.accept(q, key, id, given)
	local field = id and id .. ':s' or 'l:' .. key
	local lock, at = read_lock(q, field) or fresh(), next_number(q)
	local was_leased = is_leased(lock)

	lock.v, lock.a, lock.h = given.version, given.updated, given.hidden == 1 or nil
	lock.docs[#lock.docs + 1] = { n = given.name, e = given.etag, at = given.at, f = at }
	call('HSET', q.msg, 'd:' .. int(at), given.head, 'd:' .. int(at) .. ':p', given.payload)
	if not id then
		save_key(q, key, lock, was_leased)
		return
	end
	write_lock(q, field, lock)
	local m = load(q, id)

	if not m.st then
		m.st = 1
		save(q, id, m)
		count(q, 'states', 1)
	end
end

end
