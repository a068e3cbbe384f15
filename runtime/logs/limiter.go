package logs

import (
	"fmt"
	"sync"
	"time"
)

// unlimited is the log rate limit that lets everything through.
const unlimited = -1

// overagePause is how long an instance is kept silent once it went over its
// limit (Diego).
const overagePause = time.Second

// meterSeconds is the span that Rate averages over.
const meterSeconds = 5

// Limiter holds one instance, all its processes together, to its log rate
// and measures what it lets through. It may be used from several goroutines.
type Limiter struct {
	perSecond int64

	mu      sync.Mutex
	tokens  float64
	filled  time.Time
	silent  time.Time // dropped until then
	buckets [meterSeconds + 1]int64
	second  int64 // of the newest bucket
	first   int64
}

// NewLimiter gives a limiter of bytesPerSecond: Unlimited (or any negative)
// lets everything pass, 0 nothing.
func NewLimiter(bytesPerSecond int64) *Limiter {
	now := time.Now()
	return &Limiter{perSecond: bytesPerSecond, tokens: float64(bytesPerSecond), filled: now, second: now.Unix(), first: now.Unix()}
}

// verdict is what becomes of a line.
type verdict int

const (
	pass     verdict = iota
	drop             // silently
	announce         // drop, and tell the user why
)

func (l *Limiter) allow(n int, now time.Time) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.perSecond == 0 || now.Before(l.silent):
		return drop
	case l.perSecond > 0 && !l.take(n, now):
		l.silent = now.Add(overagePause)
		return announce
	}
	l.advance(now)
	l.buckets[l.second%int64(len(l.buckets))] += int64(n)
	return pass
}

// Limit is what is logged of a line: the line, or once that the limit is exceeded, or nil.
func (l *Limiter) Limit(line []byte, now time.Time) []byte {
	switch l.allow(len(line), now) {
	case pass:
		return line
	case announce:
		return []byte(l.notice())
	}
	return nil
}

func (l *Limiter) take(n int, now time.Time) bool {
	l.tokens = min(l.tokens+now.Sub(l.filled).Seconds()*float64(l.perSecond), float64(l.perSecond))
	l.filled = now
	if float64(n) > l.tokens {
		return false
	}
	l.tokens -= float64(n)
	return true
}

// notice is Diego's line for an instance over its limit.
func (l *Limiter) notice() string {
	return fmt.Sprintf("app instance exceeded log rate limit (%d bytes/sec)", l.perSecond)
}

// advance makes the second of now the newest bucket.
func (l *Limiter) advance(now time.Time) {
	s := now.Unix()
	if s-l.second > int64(len(l.buckets)) {
		l.second = s - int64(len(l.buckets))
	}
	for l.second < s {
		l.second++
		l.buckets[l.second%int64(len(l.buckets))] = 0
	}
}

// Rate is the bytes a second let through over the last few full seconds; over
// the running second while there is no full one.
func (l *Limiter) Rate() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(time.Now())
	var sum int64
	for _, b := range l.buckets {
		sum += b
	}
	full := min(l.second-l.first, meterSeconds)
	if full > 0 {
		sum -= l.buckets[l.second%int64(len(l.buckets))]
	}
	return uint64(sum / max(full, 1))
}
