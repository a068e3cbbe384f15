package loggregator

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cupola/server/logcache"
	"cupola/server/router"
)

// timed is how long a request took. peer_type says from whose side it was seen
// (Loggregator).
func (s *Stream) timed(e router.AccessEntry) logcache.Envelope {
	return logcache.Envelope{Timestamp: e.At, SourceID: e.AppGUID, InstanceID: cmp.Or(e.Index, "0"), Kind: logcache.Timer, Began: e.Began,
		Tags: s.timers.of(e.Request.Method, e.Status), Metrics: []logcache.Metric{{Name: "http", Unit: "ns", Value: float64(e.At.Sub(e.Began))}}}
}

// timedFully is timed with all tags that a stream's reader gets: the instance's and
// the request's (go-loggregator: conversion/tov2.go).
func (s *Stream) timedFully(e router.AccessEntry) logcache.Envelope {
	timer, r := s.timed(e), e.Request
	tags := maps.Clone(s.routed.of(e.InstanceGUID, s.instanceTags(e.InstanceGUID)))
	delete(tags, tagSource)
	maps.Copy(tags, timer.Tags)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	tags[tagV1], tags["request_id"], tags["uri"] = "HttpStartStop", e.ID, scheme+"://"+r.Host+r.URL.Path
	tags["remote_address"], tags["user_agent"], tags["routing_instance_id"] = r.RemoteAddr, r.UserAgent(), e.InstanceGUID
	tags["status_code"], tags["content_length"] = strconv.Itoa(e.Status), strconv.FormatInt(e.Written, 10)
	tags["method"], tags["forwarded"] = r.Method, forwards(r)
	timer.Tags = tags
	return timer
}

// forwards are the addresses of X-Forwarded-For, one a line.
func forwards(r *http.Request) string {
	addresses := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for n, a := range addresses {
		addresses[n] = strings.TrimSpace(a)
	}
	return strings.Join(addresses, "\n")
}

// methods are the HTTP methods with a separate tag.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace}

// timerTags keeps the tags of requests, so that a busy router shares them instead of
// making new ones. They contain nothing that clients choose, like path and agent.
type timerTags struct{ known sync.Map }

type timerKey struct {
	method string
	status int
}

func (t *timerTags) of(method string, status int) map[string]string {
	if !slices.Contains(methods, method) {
		method = "other"
	}
	if status < 100 || status > 599 {
		status = 0
	}
	key := timerKey{method, status}
	if tags, ok := t.known.Load(key); ok {
		return tags.(map[string]string)
	}
	tags, _ := t.known.LoadOrStore(key, map[string]string{
		"origin": "gorouter", "peer_type": "Server", "method": method, "status_code": strconv.Itoa(status),
	})
	return tags.(map[string]string)
}
