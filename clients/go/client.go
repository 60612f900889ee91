// Package sluice pushes messages to a Sluice server and works on them. Standard library only.
//
//	client, err := sluice.New(sluice.Config{}) // SLUICE_SERVER, or http://127.0.0.1:7171
//	pushed, err := client.Push(ctx, "mail", map[string]string{"to": "ann@example.com"}, sluice.Options{})
//
// A message is on disk when Push returns. Ids are strings; the receipt of a message settles it. A client may be used by
// any number of goroutines.
package sluice

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Config of a client. The zero value is fine.
type Config struct {
	Servers   []string      // default: SLUICE_SERVER, separated by commas, or http://127.0.0.1:7171
	Token     string        // default: SLUICE_TOKEN
	Namespace string        // default: SLUICE_NAMESPACE, or "default"
	Timeout   time.Duration // of one attempt, beside the time that it may wait; default: 30 s
	Patience  time.Duration // how long a call looks for a server that answers; default: 30 s; negative: no time
	HTTP      *http.Client  // for TLS settings; default: a client of its own
}

// Client talks to one of several servers.
type Client struct {
	namespace, token, owner string
	timeout, patience       time.Duration
	http                    *http.Client
	servers                 servers
}

func orEnv(value, name, standard string) string {
	if value == "" {
		value = os.Getenv(name)
	}
	if value == "" {
		value = standard
	}
	return value
}

// New makes a client. It connects with the first call.
func New(c Config) (*Client, error) {
	host, _ := os.Hostname()
	random := make([]byte, 3)
	_, _ = rand.Read(random)
	if len(c.Servers) == 0 {
		c.Servers = strings.Split(orEnv("", "SLUICE_SERVER", "http://127.0.0.1:7171"), ",")
	}
	made := &Client{
		namespace: orEnv(c.Namespace, "SLUICE_NAMESPACE", "default"),
		token:     orEnv(c.Token, "SLUICE_TOKEN", ""),
		owner:     fmt.Sprintf("%s:%d:%s", host, os.Getpid(), hex.EncodeToString(random)),
		timeout:   c.Timeout,
		patience:  c.Patience,
		http:      c.HTTP,
	}
	if made.timeout == 0 {
		made.timeout = 30 * time.Second
	}
	if made.patience == 0 {
		made.patience = 30 * time.Second
	}
	if made.http == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 100
		made.http = &http.Client{Transport: transport}
	}
	for _, text := range c.Servers {
		text = strings.TrimRight(strings.TrimSpace(text), "/")
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("sluice: invalid server: %s; expected http://HOST:PORT", text)
		}
		made.servers.all = append(made.servers.all, text)
	}
	return made, nil
}

// ---- Calls ----

type call struct {
	method, path string
	query        url.Values
	header       map[string]string
	body         []byte
	wait         time.Duration // the server may take so long
	repeatable   bool          // twice is the same as once
	goneIsDone   bool          // repeated, a lost lease shows that it happened
}

func (c *Client) get(path string, query ...string) *call {
	return &call{method: "GET", path: path, query: values(query), repeatable: true}
}

func post(path string, body any) *call {
	return &call{method: "POST", path: path, body: encode(body)}
}

// values of "name", "value" pairs; empty values are left out.
func values(pairs []string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// once sends the call to one server.
func (c *Client) once(ctx context.Context, server string, q *call) ([]byte, error) {
	sent := false
	ctx, cancel := context.WithTimeout(ctx, c.timeout+q.wait)
	defer cancel()
	trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }})
	target := server + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	request, err := http.NewRequestWithContext(trace, q.method, target, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	request.GetBody = nil // this package decides what is sent again
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	for name, value := range q.header {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	var body []byte
	if err == nil {
		defer response.Body.Close()
		body, err = io.ReadAll(response.Body)
	}
	switch {
	case err != nil && sent:
		return nil, broken{err}
	case err != nil:
		return nil, notSent{err}
	case response.StatusCode >= 300:
		after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return nil, refusal(response.StatusCode, body, time.Duration(after)*time.Second)
	}
	return body, nil
}

// send sends a call, again where that is safe. The answer is empty if an earlier attempt did it.
func (c *Client) send(ctx context.Context, q *call) ([]byte, error) {
	a := newAttempts(&c.servers, q, c.patience)
	for {
		body, err := c.once(ctx, a.server, q)
		if err == nil || a.happenedBefore(err) {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %v", ctx.Err(), err)
		}
		pause, err := a.pauseAfter(err)
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// do sends a call and decodes the answer into out, unless out is nil or the answer is empty.
func (c *Client) do(ctx context.Context, q *call, out any) error {
	body, err := c.send(ctx, q)
	if err != nil || out == nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("sluice: invalid answer of %s: %w", q.path, err)
	}
	return nil
}

// ---- Messages ----

// Push sends one message: []byte as it is, a string as text, everything else as JSON.
func (c *Client) Push(ctx context.Context, queue string, payload any, o Options) (Pushed, error) {
	pushed, err := c.PushItems(ctx, []Item{{queue, payload, o}})
	if err != nil {
		return Pushed{}, err
	}
	return pushed[0], nil
}

// PushMany sends up to 10,000 messages in one request: all are accepted, or none of them. Give idempotency keys by
// PushItems.
func (c *Client) PushMany(ctx context.Context, queue string, payloads []any, o Options) ([]Pushed, error) {
	if o.IdempotencyKey != "" {
		return nil, errors.New("sluice: invalid option: IdempotencyKey; expected one for each message: use PushItems")
	}
	items := make([]Item, len(payloads))
	for i, payload := range payloads {
		items[i] = Item{queue, payload, o}
	}
	return c.PushItems(ctx, items)
}

// PushItems sends messages of any queues. The request is repeated by itself if every message has an idempotency key.
func (c *Client) PushItems(ctx context.Context, items []Item) ([]Pushed, error) {
	list := make([]map[string]any, len(items))
	repeatable := true
	for i := range items {
		made, err := items[i].encode(c.namespace)
		if err != nil {
			return nil, err
		}
		list[i] = made
		repeatable = repeatable && items[i].IdempotencyKey != ""
	}
	q := post("/enqueue", list)
	q.query = values([]string{"detail", "1"})
	q.repeatable = repeatable
	var pushed []Pushed
	err := c.do(ctx, q, &pushed)
	if err == nil && len(pushed) != len(items) {
		err = fmt.Errorf("sluice: invalid answer of /enqueue: %d results for %d messages", len(pushed), len(items))
	}
	return pushed, err
}

// Take says which messages to lease.
type Take struct {
	Limit     int           // default: 1
	Wait      time.Duration // how long to wait for the first
	Lease     time.Duration // default: of the queue
	Kinds     []string      // messages of these kinds alone; default: every message
	Namespace string
}

// Take leases messages. A server whose answer does not arrive takes its messages back.
func (c *Client) Take(ctx context.Context, queue string, t Take) ([]*Message, error) {
	limit, lease := t.Limit, ""
	if limit == 0 {
		limit = 1
	}
	if t.Lease > 0 {
		lease = duration(t.Lease)
	}
	q := c.get("/dequeue", "namespace", c.space(t.Namespace), "queue", queue, "limit", strconv.Itoa(limit),
		"wait", duration(t.Wait), "lease", lease, "owner", c.owner, "kinds", strings.Join(t.Kinds, ","))
	q.wait = t.Wait
	var messages []*Message
	err := c.do(ctx, q, &messages)
	for _, m := range messages {
		m.lease = t.Lease
	}
	return messages, err
}

// beat says that a worker lives. Returns what an operator asks of it: running, quiet or stop.
func (c *Client) beat(ctx context.Context, queue, field string) (string, error) {
	q := post("/worker", map[string]any{"namespace": c.namespace, "queue": queue})
	q.header = map[string]string{"Sluice-Worker": field}
	q.repeatable = true
	var answer struct{ State string }
	err := c.do(ctx, q, &answer)
	return answer.State, err
}

func (c *Client) space(given string) string {
	if given != "" {
		return given
	}
	return c.namespace
}

func settle(path string, body map[string]any) *call {
	q := post(path, body)
	q.repeatable, q.goneIsDone = true, true
	return q
}

// Ack ends a message. result, unless nil, is kept for Result if the message has KeepResult.
func (c *Client) Ack(ctx context.Context, m *Message, result any) error {
	body := map[string]any{"receipt": m.Receipt}
	if result != nil {
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("sluice: invalid result: %w", err)
		}
		body["result"] = json.RawMessage(text)
	}
	return c.do(ctx, settle("/ack", body), nil)
}

// Nack says how the work failed. The zero value is a failure without a text, retried by the policy of the queue.
type Nack struct {
	Error string
	Delay time.Duration // 0: by the policy of the queue; negative: at once
	Defer bool          // not a failure
	Dead  bool          // to the dead letters
}

// Nack gives a message back.
func (c *Client) Nack(ctx context.Context, m *Message, n Nack) error {
	body := map[string]any{"receipt": m.Receipt, "defer": n.Defer, "dead": n.Dead}
	put(body, "error", n.Error, n.Error != "")
	if n.Delay < 0 {
		body["delay"] = 0
	} else {
		put(body, "delay", duration(n.Delay), n.Delay > 0)
	}
	return c.do(ctx, settle("/nack", body), nil)
}

// Extend makes leases last for another lease from now on. Returns the messages whose lease is lost.
func (c *Client) Extend(ctx context.Context, messages []*Message, lease time.Duration) ([]*Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	list := make([]map[string]any, len(messages))
	for i, m := range messages {
		list[i] = map[string]any{"receipt": m.Receipt, "lease": duration(lease)}
	}
	q := post("/extend", list)
	q.repeatable = true
	var answer []struct {
		Status int
		Error  string
	}
	if err := c.do(ctx, q, &answer); err != nil {
		return nil, err
	}
	var lost []*Message
	for i, one := range answer {
		if i < len(messages) && (one.Status == 404 || one.Status == 409) {
			if byName[one.Error] == ErrCanceled {
				atomic.StoreInt32(&messages[i].canceled, 1)
			}
			lost = append(lost, messages[i])
		}
	}
	return lost, nil
}

// Checkpoint stores how far the work on a message has come, any JSON but null, and makes its lease last for another lease from
// now on. The next holder of the message has it as Checkpoint. ErrLeaseLost: another one may have the message.
func (c *Client) Checkpoint(ctx context.Context, m *Message, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("sluice: invalid checkpoint: %w", err)
	}
	body := map[string]any{"receipt": m.Receipt, "checkpoint": json.RawMessage(text)}
	put(body, "lease", duration(m.lease), m.lease > 0)
	q := post("/extend", body)
	q.repeatable = true
	return c.do(ctx, q, nil)
}

// ErrNotFinished: the message was not acked within the wait of Result.
var ErrNotFinished = errors.New("sluice: message is not finished")

// Result decodes the result of a message that was acked into out, and waits for it.
func (c *Client) Result(ctx context.Context, id string, wait time.Duration, out any) error {
	q := c.get("/result", "namespace", c.namespace, "id", id, "wait", duration(wait))
	q.wait = wait
	var answer struct {
		Status string
		Result json.RawMessage
	}
	if err := c.do(ctx, q, &answer); err != nil {
		return err
	}
	if answer.Status != "done" {
		return fmt.Errorf("%w: %s", ErrNotFinished, id)
	}
	if out == nil || len(answer.Result) == 0 {
		return nil
	}
	return json.Unmarshal(answer.Result, out)
}

// ---- Queues ----

// Peek returns up to 100 messages in a state ("ready", "delayed", "leased", "dead", "all") without leasing them.
func (c *Client) Peek(ctx context.Context, queue, state string) ([]*Message, error) {
	var page struct{ Messages []*Message }
	err := c.do(ctx, c.get("/peek", "namespace", c.namespace, "queue", queue, "state", state, "limit", "100"), &page)
	return page.Messages, err
}

// DeadLetters returns all dead letters, oldest first.
func (c *Client) DeadLetters(ctx context.Context, queue string) ([]*Message, error) {
	var all []*Message
	for cursor := ""; ; {
		var page struct {
			Messages []*Message
			Cursor   json.RawMessage
		}
		if err := c.do(ctx, c.get("/dlq", "namespace", c.namespace, "queue", queue, "cursor", cursor), &page); err != nil {
			return all, err
		}
		all = append(all, page.Messages...)
		cursor = strings.Trim(string(page.Cursor), `"`)
		if cursor == "" || cursor == "null" || cursor == "0" {
			return all, nil
		}
	}
}

// Redrive lets dead letters start anew: those with the ids, or, without ids, the oldest 1000. Returns how many.
func (c *Client) Redrive(ctx context.Context, queue string, ids ...string) (int, error) {
	body := map[string]any{"namespace": c.namespace, "queue": queue}
	if len(ids) > 0 {
		body["ids"] = ids
	} else {
		body["limit"] = 1000
	}
	var answer struct{ Redriven int }
	err := c.do(ctx, post("/dlq/redrive", body), &answer)
	return answer.Redriven, err
}

// Stats are the counts of a queue.
type Stats struct {
	Total   int `json:"total"`
	Ready   int `json:"ready"`
	Delayed int `json:"delayed"`
	Leased  int `json:"leased"`
	Held    int `json:"held"`
	Dead    int `json:"dead"`
}

// Stats returns the counts of a queue.
func (c *Client) Stats(ctx context.Context, queue string) (Stats, error) {
	var s Stats
	err := c.do(ctx, c.get("/stats", "namespace", c.namespace, "queue", queue), &s)
	return s, err
}

// SetPolicy changes the named fields of the policy of a queue: {"max_attempts": 3}.
func (c *Client) SetPolicy(ctx context.Context, queue string, changes map[string]any) error {
	q := post("/policy", changes)
	q.query = values([]string{"namespace", c.namespace, "queue", queue})
	q.repeatable = true
	return c.do(ctx, q, nil)
}
