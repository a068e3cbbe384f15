package sshproxy

import (
	"sync"
	"time"
)

// window allows a number of things in each span of time.
type window struct {
	limit int
	span  time.Duration

	mu    sync.Mutex
	begun time.Time
	count int
}

func (w *window) allow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.begun) >= w.span {
		w.begun, w.count = now, 0
	}
	w.count++
	return w.count <= w.limit
}
