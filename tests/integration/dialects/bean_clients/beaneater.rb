# Beaneater, unmodified. PORT is in the environment.
require 'beaneater'
require 'json'

client = Beaneater.new("127.0.0.1:#{ENV['PORT']}")
tube = client.tubes['beaneater']
put = tube.put('from ruby', pri: 3, ttr: 50)
client.tubes.watch!('beaneater')
job = tube.reserve(30)
job.touch
job.release(delay: 0)
job = tube.reserve(30)
job.bury
buried = tube.peek(:buried).body
kicked = tube.kick(5)
job = tube.reserve(30)
stats = job.stats
job.delete
seen = []
3.times { |i| tube.put(i.to_s) }
client.jobs.register('beaneater') do |each|
  seen << each.body
  raise Beaneater::AbortProcessingError if seen.size == 3
end
client.jobs.process!
timed_out = begin
  tube.reserve(0)
  false
rescue Beaneater::TimedOutError
  true
end
puts JSON.generate(body: job.body, same: put[:id].to_s == job.id.to_s, buried: buried, kicked: kicked[:status], ttr: stats.ttr,
                   seen: seen, timed_out: timed_out, tubes: client.tubes.all.map(&:name).include?('beaneater'),
                   version: client.stats.version)
client.close
