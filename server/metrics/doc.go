// Package metrics serves what a daemon does and has to Prometheus, under the
// names that Cloud Foundry's operators graph: those of the firehose exporter for
// the router and Diego, and Cloud Controller's own.
package metrics
