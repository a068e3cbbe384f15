// Package sandbox runs what comes out of release images and is needed before a
// deployment exists: it reads their jobs, and runs the Ruby that renders their
// templates. Ruby runs in its own container, as nobody, without a network,
// without environment variables, on file systems that it cannot change but for a
// few megabytes that go with it, with bounds of time, memory, processes and
// output. Nothing that it is told lies on a disk.
package sandbox
