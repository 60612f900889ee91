package sluice

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const version = "0.2.0" // of this package

// Handler works on a message. What it returns is the result. An error is a failure, and the message comes again by the
// policy of the queue; *Retry, *Defer and *Reject decide otherwise. ctx ends when the lease is lost, or the message
// was canceled.
type Handler func(ctx context.Context, m *Message) (result any, err error)

// Worker works on the messages of one queue.
type Worker struct {
	Client      *Client
	Queue       string
	Handler     Handler
	Concurrency int           // default: 1
	Lease       time.Duration // default: 30 s; extended while the handler runs
	Wait        time.Duration // of one request for messages; default: 20 s
	Grace       time.Duration // how long handlers may run after a stop; default: 30 s
	Beat        time.Duration // how often to tell the server that the worker lives; default: 5 s; negative: never
	Log         func(text string)

	// Instead of Handler: the worker takes messages of these kinds alone.
	Kinds map[string]Handler

	kinds   []string
	mu      sync.Mutex
	running map[*Message]context.CancelFunc
	lost    int
	late    int
	quiet   chan struct{}      // while an operator wants no messages taken: closed at the end of that
	taking  context.CancelFunc // of the request for messages, if there is one
}

func (w *Worker) defaults() error {
	if w.Client == nil || w.Queue == "" || (w.Handler == nil) == (len(w.Kinds) == 0) {
		return errors.New("sluice: invalid worker; expected Client, Queue, and Handler or Kinds")
	}
	w.kinds = nil
	for kind := range w.Kinds {
		w.kinds = append(w.kinds, kind)
	}
	if w.Concurrency == 0 {
		w.Concurrency = 1
	}
	if w.Concurrency < 1 || w.Concurrency > 1000 {
		return fmt.Errorf("sluice: invalid concurrency: %d; expected 1 to 1000", w.Concurrency)
	}
	for _, d := range []struct {
		at       *time.Duration
		standard time.Duration
	}{{&w.Lease, 30 * time.Second}, {&w.Wait, 20 * time.Second}, {&w.Grace, 30 * time.Second}, {&w.Beat, 5 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.standard
		}
	}
	if w.Log == nil {
		w.Log = func(text string) { log.Print("sluice: ", text) }
	}
	w.running = map[*Message]context.CancelFunc{}
	return nil
}

// RunUntilSignal is Run that SIGTERM and SIGINT stop.
func (w *Worker) RunUntilSignal(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return w.Run(ctx)
}

// Run works until ctx ends. Then it takes no more messages and lets handlers finish for Grace; the rest goes back to the
// queue and is not counted as a failure.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.defaults(); err != nil {
		return err
	}
	var handlers sync.WaitGroup
	free := make(chan struct{}, w.Concurrency)
	keeping, stopKeeping := context.WithCancel(context.Background())
	defer stopKeeping()
	go w.keepLeases(keeping)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beating sync.WaitGroup
	beating.Add(1)
	go func() { defer beating.Done(); w.beats(keeping, stop) }()
	defer func() { stopKeeping(); beating.Wait() }()
	for ctx.Err() == nil {
		w.takeSome(ctx, free, &handlers)
	}
	done := make(chan struct{})
	go func() { handlers.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(w.Grace):
		w.giveBack()
	}
	return nil
}

// reserve waits for a free place, and takes all that are free then.
func (w *Worker) reserve(ctx context.Context, free chan struct{}) int {
	select {
	case <-ctx.Done():
		return 0
	case free <- struct{}{}:
	}
	for n := 1; ; n++ {
		select {
		case free <- struct{}{}:
		default:
			return n
		}
	}
}

func (w *Worker) takeSome(ctx context.Context, free chan struct{}, handlers *sync.WaitGroup) {
	places := w.reserve(ctx, free)
	if places == 0 {
		return
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	if !w.mayTake(ctx, cancel) {
		for i := 0; i < places; i++ {
			<-free
		}
		return
	}
	messages, err := w.Client.Take(asking, w.Queue, Take{Limit: places, Wait: w.Wait, Lease: w.Lease, Kinds: w.kinds})
	for i := len(messages); i < places; i++ {
		<-free
	}
	for _, m := range messages {
		handlers.Add(1)
		held, cancel := context.WithCancel(context.Background())
		w.mu.Lock()
		w.running[m] = cancel
		w.mu.Unlock()
		go func(m *Message) {
			defer handlers.Done()
			defer func() { <-free }()
			defer w.forget(m)
			w.work(held, m)
		}(m)
	}
	if err != nil && asking.Err() == nil {
		w.Log(fmt.Sprintf("cannot take messages: %v", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// mayTake waits until the worker is not quiet. Returns false if ctx ended. cancel ends the request that follows.
func (w *Worker) mayTake(ctx context.Context, cancel context.CancelFunc) bool {
	for {
		w.mu.Lock()
		quiet := w.quiet
		w.taking = cancel
		w.mu.Unlock()
		if quiet == nil {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-quiet:
		}
	}
}

// beats tells the server that the worker lives, and does what an operator asks.
func (w *Worker) beats(ctx context.Context, stop context.CancelFunc) {
	host, _ := os.Hostname()
	instance := strconv.FormatInt(time.Now().UnixNano(), 36)
	for w.Beat > 0 {
		w.mu.Lock()
		field := fmt.Sprintf("name=%s; host=%s; version=%s; instance=%s; slots=%d; used=%d; lost=%d; late=%d", w.Client.owner, host, version,
			instance, w.Concurrency, len(w.running), w.lost, w.late)
		w.mu.Unlock()
		asked, err := w.Client.beat(ctx, w.Queue, field)
		var refused *Refusal
		if errors.As(err, &refused) && (refused.Status == 401 || refused.Status == 403 || refused.Status == 404 || refused.Status == 405) {
			return // the server has no register of workers, or not for us
		}
		if err == nil {
			w.obey(asked, stop)
		}
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			_, _ = w.Client.beat(last, w.Queue, field+"; ends=1") // the server forgets the worker
			cancel()
			return
		case <-time.After(w.Beat):
		}
	}
}

func (w *Worker) obey(asked string, stop context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case asked == "stop":
		w.Log("an operator asked this worker to stop")
		stop()
	case asked == "quiet" && w.quiet == nil:
		w.Log("an operator asked this worker to be quiet")
		w.quiet = make(chan struct{})
		if w.taking != nil {
			w.taking()
		}
	case asked == "running" && w.quiet != nil:
		w.Log("an operator asked this worker to go on")
		close(w.quiet)
		w.quiet = nil
	}
}

// forget ends the lease of a message here. Returns false if it was forgotten before.
func (w *Worker) forget(m *Message) bool {
	w.mu.Lock()
	cancel, held := w.running[m]
	delete(w.running, m)
	w.mu.Unlock()
	if held {
		cancel()
	}
	return held
}

// cancel ends the context of the handler of a message that was canceled. What the handler returns settles the message.
func (w *Worker) cancel(m *Message) {
	w.mu.Lock()
	cancel := w.running[m]
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		w.Log(fmt.Sprintf("message %s: canceled", m.ID))
	}
}

// run calls the handler; a panic is a failure.
func (w *Worker) run(ctx context.Context, m *Message) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if handler := w.Kinds[m.Kind]; handler != nil {
		return handler(ctx, m)
	}
	return w.Handler(ctx, m)
}

func (w *Worker) work(ctx context.Context, m *Message) {
	result, failure := w.run(ctx, m)
	w.mu.Lock()
	_, held := w.running[m]
	w.mu.Unlock()
	if !held {
		return // given back, or lost
	}
	var err error
	if failure == nil {
		err = w.Client.Ack(context.Background(), m, result)
	} else {
		err = w.Client.Nack(context.Background(), m, verdict(failure))
	}
	switch {
	case errors.Is(err, ErrLeaseLost), errors.Is(err, ErrNotFound):
		w.Log(fmt.Sprintf("message %s: the lease ended before its handler did", m.ID))
	case err != nil:
		w.Log(fmt.Sprintf("message %s: cannot settle, it comes again: %v", m.ID, err))
	}
}

// verdict is what a nack says about the error of a handler.
func verdict(failure error) Nack {
	var retry *Retry
	var later *Defer
	var reject *Reject
	switch {
	case errors.As(failure, &later):
		delay := later.Delay
		if delay == 0 {
			delay = -1
		}
		return Nack{Defer: true, Delay: delay}
	case errors.As(failure, &reject):
		return Nack{Error: reject.Reason, Dead: true}
	case errors.As(failure, &retry):
		return Nack{Error: retry.Reason, Delay: retry.Delay}
	}
	return Nack{Error: failure.Error()}
}

func (w *Worker) held() []*Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]*Message, 0, len(w.running))
	for m := range w.running {
		if !m.Canceled() {
			list = append(list, m)
		}
	}
	return list
}

func (w *Worker) keepLeases(ctx context.Context) {
	kept := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.Lease / 3):
		}
		began, held := time.Now(), w.held()
		lost, err := w.Client.Extend(ctx, held, w.Lease)
		if err != nil && ctx.Err() == nil {
			w.Log(fmt.Sprintf("cannot extend leases: %v", err))
		}
		if err == nil {
			w.noteKept(time.Since(kept), len(held))
			kept = began
		}
		for _, m := range lost {
			if m.Canceled() {
				w.cancel(m)
			} else if w.forget(m) {
				w.mu.Lock()
				w.lost++
				w.mu.Unlock()
				w.Log(fmt.Sprintf("message %s: the lease is lost", m.ID))
			}
		}
	}
}

// noteKept counts leases that were extended when less than a quarter of them was left.
func (w *Worker) noteKept(took time.Duration, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.Lease*3/4 {
		w.late += n
	}
}

func (w *Worker) giveBack() {
	for _, m := range w.held() {
		if !w.forget(m) {
			continue
		}
		w.Log(fmt.Sprintf("message %s: given back, its handler did not end within %s", m.ID, w.Grace))
		if err := w.Client.Nack(context.Background(), m, Nack{Defer: true, Delay: -1}); err != nil {
			w.Log(err.Error())
		}
	}
}
