// The cases of tests/packages/test_go.py: a word on the command line chooses one. Prints "passed" at its end.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"time"

	"sluice"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func same(want, got any) {
	if !reflect.DeepEqual(want, got) {
		log.Panicf("want %v, got %v", want, got)
	}
}

func is(err, kind error) {
	if !errors.Is(err, kind) {
		log.Panicf("want %v, got %v", kind, err)
	}
}

func client(c sluice.Config) *sluice.Client {
	made, err := sluice.New(c)
	check(err)
	return made
}

func take(c *sluice.Client, queue string) *sluice.Message {
	got, err := c.Take(ctx, queue, sluice.Take{Wait: 10 * time.Second, Lease: time.Minute})
	check(err)
	same(1, len(got))
	return got[0]
}

func messages() {
	c := client(sluice.Config{})
	o := sluice.Options{Key: "k", Priority: "high", CorrelationID: "c-1", Attributes: map[string]any{"a": "b"},
		IdempotencyKey: "once", KeepResult: time.Hour, MaxAttempts: 3}
	pushed, err := c.Push(ctx, "go-messages", map[string]int{"n": 7}, o)
	check(err)
	again, err := c.Push(ctx, "go-messages", map[string]int{"n": 7}, o)
	check(err)
	same(sluice.Pushed{ID: pushed.ID, Duplicate: true}, again)
	m := take(c, "go-messages")
	var body struct{ N int }
	check(m.JSON(&body))
	same(7, body.N)
	same([]any{pushed.ID, "k", int32(0), "c-1", 1}, []any{m.ID, m.Key, m.Priority, m.CorrelationID, m.Attempts})
	if m.FencingToken() == 0 || m.Receipt == "" {
		log.Panic(m.LeaseID)
	}
	is(c.Result(ctx, m.ID, 0, nil), sluice.ErrNotFinished)
	check(c.Ack(ctx, m, "done"))
	var result string
	check(c.Result(ctx, m.ID, time.Second, &result))
	same("done", result)
	is(c.Ack(ctx, m, nil), sluice.ErrNotFound)
}

func payloads() {
	c := client(sluice.Config{})
	for _, p := range []struct {
		sent any
		text string
	}{{[]byte{0, 255}, "\x00\xff"}, {"text ü", "text ü"}, {[]int{1, 2}, "[1,2]"}, {nil, ""}, {(*int)(nil), "null"}, {"<&>", "<&>"}} {
		_, err := c.Push(ctx, "go-payloads", p.sent, sluice.Options{})
		check(err)
		m := take(c, "go-payloads")
		same(p.text, m.Text())
		check(c.Ack(ctx, m, nil))
	}
	if _, err := c.Push(ctx, "go-payloads", func() {}, sluice.Options{}); err == nil {
		log.Panic("a function is no payload")
	}
}

func batches() {
	c := client(sluice.Config{})
	list := make([]any, 100)
	for i := range list {
		list[i] = i
	}
	pushed, err := c.PushMany(ctx, "go-batches", list, sluice.Options{Delay: time.Hour})
	check(err)
	same(100, len(pushed))
	stats, err := c.Stats(ctx, "go-batches")
	check(err)
	same([]int{100, 100, 0}, []int{stats.Total, stats.Delayed, stats.Ready})
	_, err = c.PushMany(ctx, "go-batches", list, sluice.Options{IdempotencyKey: "x"})
	if err == nil {
		log.Panic("one key for many messages")
	}
	_, err = c.PushItems(ctx, []sluice.Item{{Queue: "go-batches", Payload: "a"}, {Queue: "a/b", Payload: "b"}})
	is(err, sluice.ErrInvalid)
	stats, _ = c.Stats(ctx, "go-batches")
	same(100, stats.Total)
}

func resume() {
	c := client(sluice.Config{})
	_, err := c.Push(ctx, "go-resume", "x", sluice.Options{})
	check(err)
	m := take(c, "go-resume")
	same(0, len(m.Checkpoint))
	check(c.Checkpoint(ctx, m, map[string]int{"row": 1}))
	check(c.Checkpoint(ctx, m, map[string]int{"row": 2}))
	check(c.Nack(ctx, m, sluice.Nack{Delay: -1}))
	m = take(c, "go-resume")
	same(`{"row":2}`, string(m.Checkpoint))
	check(c.Ack(ctx, m, nil))
	is(c.Checkpoint(ctx, m, 3), sluice.ErrNotFound)
}

func groups() {
	c := client(sluice.Config{})
	b, err := c.CreateBatch(ctx, sluice.NewBatch{Callback: &sluice.Item{Queue: "go-over", Payload: "all"}, Timeout: time.Hour})
	check(err)
	_, err = c.PushMany(ctx, "go-groups", []any{1, 2}, sluice.Options{Batch: b.ID})
	check(err)
	open, err := c.Batch(ctx, b.ID)
	check(err)
	same(sluice.Batch{ID: b.ID, Status: "open", Members: 2, Pending: 2}, open)
	closed, err := c.CloseBatch(ctx, b.ID)
	check(err)
	same("closed", closed.Status)
	check(c.Ack(ctx, take(c, "go-groups"), nil))
	check(c.Nack(ctx, take(c, "go-groups"), sluice.Nack{Dead: true}))
	same("all", take(c, "go-over").Text())
	all, err := c.Batches(ctx)
	check(err)
	same([]sluice.Batch{{ID: b.ID, Status: "failed", Members: 2, Done: 1, Failed: 1}}, all)
}

func settles() {
	c := client(sluice.Config{})
	_, err := c.Push(ctx, "go-settles", "x", sluice.Options{})
	check(err)
	m := take(c, "go-settles")
	lost, err := c.Extend(ctx, []*sluice.Message{m}, time.Minute)
	check(err)
	same(0, len(lost))
	check(c.Nack(ctx, m, sluice.Nack{Defer: true, Delay: -1}))
	lost, err = c.Extend(ctx, []*sluice.Message{m}, time.Minute)
	check(err)
	same(1, len(lost))
	is(c.Ack(ctx, m, nil), sluice.ErrLeaseLost)
	m = take(c, "go-settles")
	same([]int{2, 0}, []int{m.Attempts, m.Failures})
	check(c.Nack(ctx, m, sluice.Nack{Error: "no carrier", Dead: true}))
	dead, err := c.DeadLetters(ctx, "go-settles")
	check(err)
	same([]string{m.ID, "no carrier"}, []string{dead[0].ID, dead[0].Error})
	n, err := c.Redrive(ctx, "go-settles", m.ID)
	check(err)
	same(1, n)
	ready, err := c.Peek(ctx, "go-settles", "ready")
	check(err)
	same(m.ID, ready[0].ID)
}

func locks() {
	c := client(sluice.Config{})
	var seen map[string]int
	ok, err := c.ReadState(ctx, "go/lock", &seen)
	check(err)
	same(false, ok)
	check(c.WithLock(ctx, "go/lock", sluice.LockOptions{}, func(l *sluice.Lock) error {
		check(l.Write(ctx, map[string]int{"n": 1}))
		check(l.Mutate(ctx, "/n++"))
		_, err := l.Read(ctx, &seen)
		check(err)
		same(2, seen["n"])
		err = c.WithLock(ctx, "go/lock", sluice.LockOptions{Wait: -1}, func(*sluice.Lock) error { return nil })
		is(err, sluice.ErrConflict)
		return nil
	}))
	failed := errors.New("no")
	is(c.WithLock(ctx, "go/lock", sluice.LockOptions{}, func(l *sluice.Lock) error {
		check(l.Write(ctx, map[string]int{"n": 100}))
		if l.FencingToken == 0 || l.Lost() {
			log.Panic(l)
		}
		return failed
	}), failed)
	_, err = c.ReadState(ctx, "go/lock", &seen)
	check(err)
	same(map[string]int{"n": 2}, seen)
}

func errorsOfAll() {
	away, other := os.Getenv("AWAY"), os.Getenv("OTHER")
	_, err := sluice.New(sluice.Config{Servers: []string{"ftp://x"}})
	if err == nil {
		log.Panic("a server by ftp")
	}
	_, err = client(sluice.Config{Servers: []string{away}, Patience: -1}).Push(ctx, "q", "x", sluice.Options{})
	is(err, sluice.ErrUnreachable)
	_, err = client(sluice.Config{Servers: []string{other}}).Push(ctx, "q", "x", sluice.Options{})
	is(err, sluice.ErrOutcomeUnknown)
	_, err = client(sluice.Config{Servers: []string{other, os.Getenv("SLUICE_SERVER")}}).Push(ctx, "go-two", "x", sluice.Options{IdempotencyKey: "1"})
	check(err)
	_, err = client(sluice.Config{Servers: []string{away, os.Getenv("SLUICE_SERVER")}}).Push(ctx, "go-two", "x", sluice.Options{})
	check(err)
	var refused *sluice.Refusal
	_, err = client(sluice.Config{}).Push(ctx, "a/b", "x", sluice.Options{})
	if !errors.As(err, &refused) || refused.Status != 400 || refused.Name != "invalid" {
		log.Panic(err)
	}
	ended, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = client(sluice.Config{}).Take(ended, "go-empty", sluice.Take{Wait: time.Minute})
	is(err, context.DeadlineExceeded)
}

func waitFor(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The worker of the tests: SLUICE_SERVER, GATE, CONCURRENCY and LEASE are in the environment.
func worker() {
	lease, err := time.ParseDuration(os.Getenv("LEASE"))
	check(err)
	var n int
	_, err = fmt.Sscan(os.Getenv("CONCURRENCY"), &n)
	check(err)
	beat, err := time.ParseDuration(os.Getenv("BEAT"))
	check(err)
	w := &sluice.Worker{Beat: beat, Client: client(sluice.Config{}), Queue: "jobs", Concurrency: n, Lease: lease, Handler: handle}
	check(w.RunUntilSignal(ctx))
}

func handle(_ context.Context, m *sluice.Message) (any, error) {
	body := m.Text()
	if gate := os.Getenv("GATE"); gate != "" {
		fmt.Println("begun")
		waitFor(gate)
		return nil, nil
	}
	if m.ContentType == "application/json" {
		fmt.Println(body)
		return nil, nil
	}
	fmt.Println(body, m.Attempts)
	switch {
	case body == "flaky" && m.Attempts == 1:
		return nil, errors.New("no carrier")
	case body == "wait" && m.Attempts == 1:
		return nil, &sluice.Defer{Delay: 10 * time.Millisecond}
	case body == "soon" && m.Attempts == 1:
		return nil, &sluice.Retry{Reason: "soon", Delay: 10 * time.Millisecond}
	case body == "never":
		return nil, fmt.Errorf("wrapped: %w", &sluice.Reject{Reason: "no such customer"})
	case body == "bad":
		panic("seven")
	}
	return "did " + body, nil
}

func main() {
	cases := map[string]func(){"messages": messages, "payloads": payloads, "batches": batches, "settles": settles, "resume": resume, "groups": groups, "locks": locks,
		"errors": errorsOfAll, "worker": worker}
	cases[os.Args[1]]()
	fmt.Println("passed")
}
