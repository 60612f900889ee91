package sluice

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// NewBatch says what begins when the messages of a batch have ended.
type NewBatch struct {
	Callback *Item         // a message; nil: nothing begins
	Timeout  time.Duration // it begins after this time at the latest; 0: no limit
	Deadline time.Time     // the same as a moment
}

// Batch is a group of messages. Its id is Options.Batch of its members.
type Batch struct {
	ID      string `json:"uid"`
	Status  string `json:"status"` // open, closed, done, failed or deadline
	Members int    `json:"members"`
	Done    int    `json:"done"`
	Failed  int    `json:"failed"`
	Pending int    `json:"pending"`
}

// CreateBatch makes a batch. The callback begins when all members of the closed batch have ended, or at the deadline.
func (c *Client) CreateBatch(ctx context.Context, b NewBatch) (Batch, error) {
	body := map[string]any{"namespace": c.namespace}
	put(body, "timeout", duration(b.Timeout), b.Timeout != 0)
	put(body, "deadline", b.Deadline, !b.Deadline.IsZero())
	if b.Callback != nil {
		made, err := b.Callback.encode(c.namespace)
		if err != nil {
			return Batch{}, err
		}
		delete(made, "namespace")
		body["callback"] = made
	}
	var made Batch
	err := c.do(ctx, post("/batches", body), &made)
	return made, err
}

// CloseBatch closes a batch: no members join any more.
func (c *Client) CloseBatch(ctx context.Context, id string) (Batch, error) {
	q := post("/batches/close", map[string]any{"namespace": c.namespace, "id": id})
	q.repeatable = true
	var found Batch
	err := c.do(ctx, q, &found)
	return found, err
}

// Batch returns a batch as it is now.
func (c *Client) Batch(ctx context.Context, id string) (Batch, error) {
	var found Batch
	err := c.do(ctx, c.get("/batch", "namespace", c.namespace, "id", id), &found)
	return found, err
}

// Batches returns all batches of the namespace.
func (c *Client) Batches(ctx context.Context) ([]Batch, error) {
	var all []Batch
	for cursor := ""; ; {
		var page struct {
			Batches []Batch
			Cursor  json.RawMessage
		}
		if err := c.do(ctx, c.get("/batches", "namespace", c.namespace, "cursor", cursor), &page); err != nil {
			return all, err
		}
		all = append(all, page.Batches...)
		cursor = strings.Trim(string(page.Cursor), `"`)
		if cursor == "" || cursor == "null" || cursor == "0" {
			return all, nil
		}
	}
}
