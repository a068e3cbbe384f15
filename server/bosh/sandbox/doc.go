// Package sandbox runs code of releases before a deployment exists: it compiles packages,
// reads their jobs, and renders their templates with Ruby. Ruby runs in its
// own container, as the user nobody, without network and environment
// variables, on read-only file systems except for a few temporary megabytes,
// with limits on time, memory, processes and output. Its input is never on
// disk.
package sandbox
