-- call.lua - the end of the script: runs one call, after all verbs are defined.

local queues = {}
local n_queues, epoch, above, lives = string.match(ARGV[8], '^(%d+) ?(%d*) ?(%d*) ?(%S*)$')

for i = 1, tonumber(n_queues) do
	queues[i] = open_queue(arg(), arg(), num())
	local missing = unknown_prios(queues[i])

	if #missing > 0 then
		return { 'prios', i - 1, missing }
	end
end

if now == '' then
	local t = redis.call('TIME')

	now = tonumber(t[1]) * 1e6 + tonumber(t[2])
else
	now = tonumber(now)
end
came = tonumber(came)
for _, q in ipairs(queues) do
	now = math.max(now, q.time) -- REDIS-1: time never goes back
end

local before = budget

for _, q in ipairs(queues) do
	if epoch ~= '' then
		q.said = tonumber(epoch)
		mark(q, q.said, lives)
		lift(q, tonumber(above))
	end
	tick(q, now - came)
end

local answer = verbs[verb](queues)
local tails = {}

for i, q in ipairs(queues) do
	if q.changed then
		write('HSET', q.meta, 'time', int(now))
	end
	local ready = q.woken and q.policy.paused == 0 and ready_count(q) or -1

	if ready > 0 then
		call('PUBLISH', channel, caller .. ':' .. q.name)
	end
	for _, key in ipairs(q.freed) do
		call('PUBLISH', channel, caller .. ':' .. q.name .. ' ' .. key)
	end
	for node, leases in pairs(q.told) do
		call('PUBLISH', channel, caller .. ':=' .. node .. ':' .. leases)
	end
	tails[i] = { next_due(q), ready, q.failed, q.died, q.done, q.ended, q.freed,
		is_late(q) and q.lives == '' and '.' or q.lives, q.lives == '' and q.number or counter(q), q.lost,
		q.changed and q.fresh and 1 or 0 }
end
write_out(queues)
return { 'ok', int(now), before - budget, answer, tails }
