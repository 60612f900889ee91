package sluice

// Which server a call asks, and whether it is asked again:
//
//   - A server that is away, starts, drains or does not have the queue: the next server of the list, until the patience
//     ends. A call that waits is patient for as long as it waits.
//   - A request that was sent and not answered is sent again if twice is the same as once. Otherwise the caller gets
//     ErrOutcomeUnknown.
//   - Every other refusal is for the caller: limits, too.

import (
	"errors"
	"fmt"
	"math/rand"
	"sync/atomic"
	"time"
)

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

type servers struct {
	all     []string
	current atomic.Int64
}

func (s *servers) now() string { return s.all[int(s.current.Load())%len(s.all)] }

// next leaves a server that failed, unless another call has left it already.
func (s *servers) next(failed string) {
	at := s.current.Load()
	if s.now() == failed {
		s.current.CompareAndSwap(at, (at+1)%int64(len(s.all)))
	}
}

// notSent: the request did not leave, so nothing can have happened.
type notSent struct{ error }

// broken: the request left, at least in part, and no whole answer came.
type broken struct{ error }

type attempts struct {
	servers *servers
	call    *call
	until   time.Time
	failed  int
	inDoubt bool
	server  string
}

func newAttempts(s *servers, c *call, patience time.Duration) *attempts {
	if c.wait > patience {
		patience = c.wait
	}
	return &attempts{servers: s, call: c, until: time.Now().Add(patience), server: s.now()}
}

// happenedBefore: an attempt in doubt did happen, and the message is not ours any more.
func (a *attempts) happenedBefore(err error) bool {
	return a.inDoubt && a.call.goneIsDone && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrLeaseLost))
}

// pauseAfter returns how long to wait before the next attempt, or the error for the caller.
func (a *attempts) pauseAfter(err error) (time.Duration, error) {
	var refused *Refusal
	isRefused := errors.As(err, &refused)
	if _, isBroken := err.(broken); isBroken || (isRefused && refused.Name == "outcome_unknown") {
		if !a.call.repeatable {
			return 0, fmt.Errorf("%w: %s: %v", ErrOutcomeUnknown, a.call.path, err)
		}
		a.inDoubt = true
	} else if isRefused && refused.Status != 408 && refused.Status != 503 {
		return 0, err
	}
	pause := a.nextPause()
	if time.Now().Add(pause).After(a.until) {
		if isRefused {
			return 0, err
		}
		return 0, fmt.Errorf("%w: %s: %v", ErrUnreachable, a.server, err)
	}
	a.servers.next(a.server)
	a.server = a.servers.now()
	return pause, nil
}

// nextPause is 0 while a server of the list was not tried, then longer.
func (a *attempts) nextPause() time.Duration {
	a.failed++
	rounds := a.failed / len(a.servers.all)
	if rounds == 0 {
		return 0
	}
	pause := longestPause
	if rounds < 5 {
		pause = firstPause << rounds
	}
	if pause > longestPause {
		pause = longestPause
	}
	return pause/2 + time.Duration(rand.Int63n(int64(pause/2)))
}
