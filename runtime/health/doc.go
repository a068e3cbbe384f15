// Package health watches one container from outside, as Diego's declarative
// health checks do: it probes until the first success (startup), then says
// when a probe fails (liveness), and besides that whether traffic should reach
// the container (readiness). Texts and timings are Diego's.
package health
