package bbs

import (
	"context"
	"strings"
)

// stackStays wants the stack of an LRP and a task to be kept by the API, which
// names them. That it is part of cupola comes second.
func (b *bbsClient) stackStays() {
	ctx := context.Background()
	guid, err := b.Client().First(ctx, "stack minifs", "/v3/stacks?names=minifs")
	if err != nil {
		b.T.Fatal(err)
	}
	err = b.Client().Call(ctx, "DELETE", "/v3/stacks/"+guid, nil, nil)
	const want = "Cannot delete stack 'minifs' because it is used through the BBS API: LRP rotated, task rotated."
	if err == nil || !strings.Contains(err.Error(), want) {
		b.T.Errorf("got %v; want %s", err, want)
	}
}
