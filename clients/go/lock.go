package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"time"
)

// LockOptions of WithLock.
type LockOptions struct {
	TTL  time.Duration // default: 30 s; the lock is kept while the function runs
	Wait time.Duration // 0: as long as ctx allows; negative: not at all
}

// Lock is a lock that is held. Its document is committed when the function of WithLock returns nil.
type Lock struct {
	Key          string
	FencingToken uint64

	client *Client
	named  map[string]any
	header map[string]string
	query  []string
	ttl    time.Duration
	lost   atomic.Bool
}

func wholeSeconds(d time.Duration) int {
	if d < time.Second {
		return 1
	}
	return int(d.Round(time.Second) / time.Second)
}

func (c *Client) acquire(ctx context.Context, key string, o LockOptions) (*Lock, error) {
	block := 0
	if o.Wait < 0 {
		block = -1
	} else if o.Wait > 0 {
		block = wholeSeconds(o.Wait)
	}
	q := post("/v1/acquire", map[string]any{"namespace": c.namespace, "key": key, "owner": c.owner,
		"ttl_seconds": wholeSeconds(o.TTL), "block_seconds": block})
	q.repeatable = true
	q.wait = o.Wait
	if o.Wait == 0 {
		q.wait = 365 * 24 * time.Hour
	}
	var lease struct {
		Namespace, Key string
		LeaseID        string `json:"lease_id"`
		TxnID          string `json:"txn_id"`
		FencingToken   uint64 `json:"fencing_token"`
	}
	if err := c.do(ctx, q, &lease); err != nil {
		return nil, err
	}
	return &Lock{
		Key: lease.Key, FencingToken: lease.FencingToken, client: c, ttl: o.TTL,
		named:  map[string]any{"namespace": lease.Namespace, "key": lease.Key, "lease_id": lease.LeaseID, "txn_id": lease.TxnID},
		header: map[string]string{"X-Lease-ID": lease.LeaseID, "X-Txn-ID": lease.TxnID, "X-Fencing-Token": strconv.FormatUint(lease.FencingToken, 10)},
		query:  []string{"namespace", lease.Namespace, "key", lease.Key},
	}, nil
}

// WithLock holds a lock while work runs. The document of the lock is committed if work returns nil, otherwise rolled back.
func (c *Client) WithLock(ctx context.Context, key string, o LockOptions, work func(*Lock) error) error {
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	l, err := c.acquire(ctx, key, o)
	if err != nil {
		return err
	}
	rollback := true
	keeping, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); l.keep(keeping) }()
	defer func() {
		stop()
		<-done
		if rollback { // also if work panics; err is that of work
			_ = l.release(true)
		}
	}()
	if err = work(l); err != nil {
		return err
	}
	rollback = false
	return l.release(false)
}

func (l *Lock) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.ttl / 3):
		}
		q := post("/v1/keepalive", merged(l.named, "ttl_seconds", wholeSeconds(l.ttl)))
		q.header, q.repeatable = l.header, true
		err := l.client.do(ctx, q, nil)
		var refused *Refusal
		if errors.As(err, &refused) { // others: a server may be back before the lease ends
			l.lost.Store(true)
			return
		}
	}
}

func merged(base map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for k, v := range base {
		all[k] = v
	}
	return all
}

func (l *Lock) release(rollback bool) error {
	q := post("/v1/release", merged(l.named, "rollback", rollback))
	q.header, q.repeatable = l.header, true
	return l.client.do(context.Background(), q, nil)
}

// Lost is true if the lease has ended although the lock was kept.
func (l *Lock) Lost() bool { return l.lost.Load() }

// Read decodes the document as this holder sees it into out. ok is false if the key has none.
func (l *Lock) Read(ctx context.Context, out any) (ok bool, err error) {
	q := l.client.get("/v1/get", l.query...)
	q.header = l.header
	return l.client.document(ctx, q, out)
}

// Write stages a new document.
func (l *Lock) Write(ctx context.Context, document any) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	q := &call{method: "POST", path: "/v1/update", body: text, query: values(l.query), header: l.header, repeatable: true}
	return l.client.do(ctx, q, nil)
}

// Mutate changes the document in place: l.Mutate(ctx, "/attempts++", "/status=paid").
func (l *Lock) Mutate(ctx context.Context, mutations ...string) error {
	q := post("/v1/mutate", map[string]any{"mutations": mutations})
	q.query, q.header = values(l.query), l.header
	return l.client.do(ctx, q, nil)
}

// ReadState decodes the committed document of a key into out. ok is false if the key has none.
func (c *Client) ReadState(ctx context.Context, key string, out any) (ok bool, err error) {
	return c.document(ctx, c.get("/v1/get", "namespace", c.namespace, "key", key, "public", "1"), out)
}

func (c *Client) document(ctx context.Context, q *call, out any) (bool, error) {
	body, err := c.send(ctx, q)
	if err != nil || len(body) == 0 {
		return false, err
	}
	return true, json.Unmarshal(body, out)
}
