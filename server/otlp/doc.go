// Package otlp sends metrics and traces to a collector of OpenTelemetry, by its
// protocol (OTLP 1.x over HTTP, in protobuf).
//
// A trace continues that of a client which sends W3C's traceparent with the flag
// "sampled"; of requests without one, a part is sampled. What the collector does
// not take soon is dropped: nothing waits for it.
package otlp
