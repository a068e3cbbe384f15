package main

import (
	"context"
	"strings"
)

// stackStays wants the stack of an LRP and a task to be kept by the API, which
// names them. That it is part of cupola comes second.
func (b *bbsClient) stackStays() {
	ctx := context.Background()
	guid, err := b.client().first(ctx, "stack minifs", "/v3/stacks?names=minifs")
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.client().call(ctx, "DELETE", "/v3/stacks/"+guid, nil, nil)
	const want = "Cannot delete stack 'minifs' because it is used through the BBS API: LRP rotated, task rotated."
	if err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("got %v; want %s", err, want)
	}
}
