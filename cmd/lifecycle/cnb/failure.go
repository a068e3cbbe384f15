package cnb

import "errors"

// phase is what a staging was doing when it failed, with cnbapplifecycle's exit code and
// words (pkg/errors). Cloud Controller maps the codes to errors of the API.
type phase struct {
	code int
	text string
}

var (
	phaseGeneric  = phase{231, "generic build failure"}
	phaseDownload = phase{232, "downloading buildpacks failed"}
	phaseDetect   = phase{233, "detecting failed"}
	phaseBuild    = phase{234, "building failed"}
	phaseExport   = phase{235, "exporting failed"}
	phaseLaunch   = phase{236, "launching failed"}
	phaseRestore  = phase{237, "restoring failed"}
)

// failure is an error in a phase.
type failure struct {
	phase
	cause error
}

func (f failure) Error() string { return f.text + ": " + f.cause.Error() }
func (f failure) Unwrap() error { return f.cause }

// in returns err as one of a phase; nil stays nil.
func (p phase) in(err error) error {
	if err == nil {
		return nil
	}
	return failure{p, err}
}

func exitCode(err error) int {
	if f, ok := errors.AsType[failure](err); ok {
		return f.code
	}
	return phaseGeneric.code
}
