package builder

import "errors"

// failure is an error with the text and the exit code that Cloud Foundry's
// builder gives it.
type failure struct {
	code  int
	text  string
	cause error
}

func (f failure) Error() string {
	if f.cause == nil {
		return f.text
	}
	return f.text + ": " + f.cause.Error()
}

// Cloud Controller maps 222, 223 and 224 to error codes of the API. A failing
// finalize script is a compile failure by the upstream builder's code, which
// wraps its text; so 226, though defined, is not seen.
var (
	errDetect   = failure{code: 222, text: "None of the buildpacks detected a compatible application"}
	errCompile  = failure{code: 223, text: "Failed to compile droplet"}
	errRelease  = failure{code: 224, text: "Failed to build droplet release"}
	errSupply   = failure{code: 225, text: "Failed to run all supply scripts"}
	errNoSupply = failure{code: 225, text: "Error: one of the buildpacks chosen to supply dependencies does not support multi-buildpack apps"}
	errFinalize = failure{code: 226, text: "Failed to run finalize script"}

	errSetup    = failure{code: 1, text: "Failed to set up filesystem when generating droplet"}
	errProcfile = failure{code: 1, text: "Failed to read command from Procfile"}
	errCompress = failure{code: 1, text: "Failed to compress droplet filesystem"}
	errCache    = failure{code: 1, text: "Failed to compress build artifacts"}
)

const missingFinalize = "Warning: the last buildpack is not compatible with multi-buildpack apps and cannot make use of any dependencies supplied by the buildpacks specified before it"

// by returns the failure with what caused it.
func (f failure) by(cause error) error {
	f.cause = cause
	return f
}

// exitCode is that of the outermost failure, and 1 for any other error.
func exitCode(err error) int {
	if f, ok := errors.AsType[failure](err); ok {
		return f.code
	}
	return 1
}
