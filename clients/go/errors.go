package sluice

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Errors to compare with errors.Is. A *Refusal is one of them by its status and its name.
var (
	// ErrUnreachable: no server of the list answered in time.
	ErrUnreachable = errors.New("sluice: unreachable")
	// ErrOutcomeUnknown: the request may have happened. Messages with an idempotency key are sent again instead.
	ErrOutcomeUnknown = errors.New("sluice: outcome unknown")
	// ErrCanceled: an operator has canceled the message. Stop its work and settle it; the lease cannot be extended.
	ErrCanceled = errors.New("sluice: message canceled")

	ErrInvalid      = errors.New("sluice: invalid")
	ErrUnauthorized = errors.New("sluice: unauthorized")
	ErrForbidden    = errors.New("sluice: forbidden")
	ErrNotFound     = errors.New("sluice: not found")
	ErrLeaseLost    = errors.New("sluice: lease lost")
	ErrConflict     = errors.New("sluice: conflict")
	ErrTooLarge     = errors.New("sluice: too large")
	ErrThrottled    = errors.New("sluice: throttled")
	ErrUnavailable  = errors.New("sluice: unavailable")
)

var byName = map[string]error{"lease_lost": ErrLeaseLost, "lease_required": ErrLeaseLost, "message_canceled": ErrCanceled}

var byStatus = map[int]error{
	400: ErrInvalid, 401: ErrUnauthorized, 403: ErrForbidden, 404: ErrNotFound, 405: ErrInvalid, 409: ErrConflict,
	413: ErrTooLarge, 429: ErrThrottled, 503: ErrUnavailable,
}

// Refusal is the answer of a server that refused. Nothing has changed. docs/api.md lists the values of Name.
type Refusal struct {
	Status     int
	Name       string // "queue_full"
	Message    string
	RetryAfter time.Duration // 0: not given
	Body       []byte
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("sluice: %d %s: %s", r.Status, r.Name, r.Message)
}

// Is makes errors.Is(err, sluice.ErrNotFound) work.
func (r *Refusal) Is(target error) bool {
	if kind, known := byName[r.Name]; known {
		return kind == target
	}
	return byStatus[r.Status] == target
}

func refusal(status int, body []byte, after time.Duration) *Refusal {
	var said struct{ Error, Message, Detail string }
	if json.Unmarshal(body, &said) != nil { // a proxy's, perhaps
		said.Message = string(body)
	}
	if said.Message == "" {
		said.Message = said.Detail
	}
	return &Refusal{Status: status, Name: said.Error, Message: said.Message, RetryAfter: after, Body: body}
}

// Retry, returned by a handler: the work failed; try again after Delay. A zero Delay is the policy of the queue.
type Retry struct {
	Reason string
	Delay  time.Duration
}

func (r *Retry) Error() string { return r.Reason }

// Defer, returned by a handler: not now, and not a failure; the message comes again after Delay.
type Defer struct{ Delay time.Duration }

func (d *Defer) Error() string { return "deferred" }

// Reject, returned by a handler: the work can never succeed; the message becomes a dead letter at once.
type Reject struct{ Reason string }

func (r *Reject) Error() string { return r.Reason }
