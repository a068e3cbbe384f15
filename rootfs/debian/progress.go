package debian

import "sync"

// A Step is a stage of a build.
type Step string

// The steps in order; Download and Unpack overlap.
const (
	stepIndex    Step = "index"    // read and verify the archive's indexes
	stepResolve  Step = "resolve"  // choose the packages
	stepDownload Step = "download" // Done and Total are bytes
	stepUnpack   Step = "unpack"   // Done and Total are packages
	stepFinish   Step = "finish"   // accounts, certificates, alternatives, dpkg's database
)

// Progress says how far a step is. Total is 0 where it is not known.
type Progress struct {
	Step   Step
	Detail string // a package or an archive, for people
	Done   int64
	Total  int64
}

// A reporter serialises progress calls, so that the caller need not.
type reporter struct {
	mu sync.Mutex
	fn func(Progress)
}

func (r *reporter) report(p Progress) {
	if r.fn == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fn(p)
}
