package sluice

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Options of a message; the zero value of each is the default of the server. docs/api.md explains them.
type Options struct {
	Namespace      string
	Key            string
	Kind           string // consumers may take some kinds alone
	Priority       any    // a number, or "high", "normal", "low"
	Delay          time.Duration
	At             time.Time
	TTL            time.Duration
	IdempotencyKey string
	CorrelationID  string
	Attributes     map[string]any
	ContentType    string
	MaxAttempts    int
	KeepResult     time.Duration
	Traceparent    string
	Tracestate     string
	Batch          string // the id of a batch that the message is a member of
}

// Item is a message to push: a payload of []byte as it is, a string as text, everything else as JSON.
type Item struct {
	Queue   string
	Payload any
	Options
}

// Pushed is a message that the server has accepted.
type Pushed struct {
	ID        string `json:"uid"`
	Duplicate bool   `json:"duplicate"`
}

func duration(d time.Duration) string {
	return strconv.FormatInt(d.Microseconds(), 10) + "us"
}

func put(to map[string]any, name string, value any, is bool) {
	if is {
		to[name] = value
	}
}

func (i *Item) encode(namespace string) (map[string]any, error) {
	o := &i.Options
	m := map[string]any{"namespace": namespace, "queue": i.Queue}
	switch p := i.Payload.(type) {
	case nil:
	case []byte:
		m["payload"] = base64.StdEncoding.EncodeToString(p)
	case string:
		m["text"] = p
	default:
		text, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("sluice: invalid payload: %w", err)
		}
		m["json"] = json.RawMessage(text)
		if string(text) == "null" { // a member json that is null counts as missing
			delete(m, "json")
			m["payload"], m["content_type"] = "bnVsbA==", "application/json"
		}
	}
	put(m, "namespace", o.Namespace, o.Namespace != "")
	put(m, "key", o.Key, o.Key != "")
	put(m, "kind", o.Kind, o.Kind != "")
	put(m, "priority", o.Priority, o.Priority != nil)
	put(m, "delay", duration(o.Delay), o.Delay != 0)
	put(m, "deliver_after", o.At, !o.At.IsZero())
	put(m, "ttl", duration(o.TTL), o.TTL != 0)
	put(m, "idempotency_key", o.IdempotencyKey, o.IdempotencyKey != "")
	put(m, "correlation_id", o.CorrelationID, o.CorrelationID != "")
	put(m, "attributes", o.Attributes, o.Attributes != nil)
	put(m, "content_type", o.ContentType, o.ContentType != "")
	put(m, "max_attempts", o.MaxAttempts, o.MaxAttempts != 0)
	put(m, "keep_result", duration(o.KeepResult), o.KeepResult != 0)
	put(m, "traceparent", o.Traceparent, o.Traceparent != "")
	put(m, "tracestate", o.Tracestate, o.Tracestate != "")
	put(m, "batch", o.Batch, o.Batch != "")
	return m, nil
}

// Message is a message as it was delivered or looked at.
type Message struct {
	ID             string          `json:"uid"`
	Namespace      string          `json:"namespace"`
	Queue          string          `json:"queue"`
	Payload        []byte          `json:"payload"`
	Priority       int32           `json:"priority"`
	Attempts       int             `json:"attempts"`
	Failures       int             `json:"failure_attempts"`
	Receipt        string          `json:"receipt"` // settles the message
	LeaseID        string          `json:"lease_id"`
	Key            string          `json:"key"`
	Kind           string          `json:"kind"`
	ContentType    string          `json:"content_type"`
	CorrelationID  string          `json:"correlation_id"`
	Attributes     json.RawMessage `json:"attributes"`
	Checkpoint     json.RawMessage `json:"checkpoint"` // what an earlier holder has stored; nil: nothing
	Traceparent    string          `json:"traceparent"`
	Tracestate     string          `json:"tracestate"`
	Error          string          `json:"error"` // of the last failure
	EnqueuedAt     time.Time       `json:"enqueued_at"`
	LeaseExpiresAt time.Time       `json:"lease_expires_at"`

	canceled int32         // by Extend
	lease    time.Duration // as it was asked for; 0: of the queue
}

// Canceled says whether an operator has canceled the message, as Extend has learned: stop; what the handler returns ends it.
func (m *Message) Canceled() bool { return atomic.LoadInt32(&m.canceled) != 0 }

// Text returns the payload as a string.
func (m *Message) Text() string { return string(m.Payload) }

// JSON decodes the payload into v.
func (m *Message) JSON(v any) error { return json.Unmarshal(m.Payload, v) }

// FencingToken rises with every delivery of the queue: systems that you write to can refuse a late worker. 0: the message
// is not leased.
func (m *Message) FencingToken() uint64 {
	_, digits, _ := strings.Cut(m.LeaseID, "-")
	token, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return token
}

func encode(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // values of this package; payloads were encoded before
	}
	return out.Bytes()
}
