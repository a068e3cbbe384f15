package sshproxy

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &window{limit: 2, span: time.Minute}
		for n, want := range []bool{true, true, false, false} {
			if got := w.allow(); got != want {
				t.Errorf("%d: got %v; want %v", n, got, want)
			}
		}
		<-time.After(time.Minute)
		if !w.allow() {
			t.Error("nothing is allowed after the span")
		}
	})
}
