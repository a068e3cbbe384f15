package desire

import (
	"strings"
)

// BuildError is why a build failed, in Cloud Controller's words.
type BuildError struct {
	ID     string // "NoAppDetectedError"
	Detail string
}

// Error is the text that a build shows; the cf CLI looks for the ID in it.
func (e BuildError) Error() string { return e.ID + " - " + e.Detail }

func stagingError(detail string) BuildError {
	return BuildError{ID: "StagingError", Detail: "Staging error: " + detail}
}

// StagingFailure is the error of a build whose task failed for the reason: the
// rules of Cloud Controller's failure reason sanitizer. The builder's exit
// codes 225 and 226 have no words of their own there either.
func StagingFailure(reason string) BuildError {
	switch {
	case strings.HasSuffix(reason, "222"):
		return BuildError{"NoAppDetectedError", "An app was not successfully detected by any available buildpack"}
	case strings.HasSuffix(reason, "223"):
		return BuildError{"BuildpackCompileFailed", "App staging failed in the buildpack compile phase"}
	case strings.HasSuffix(reason, "224"):
		return BuildError{"BuildpackReleaseFailed", "App staging failed in the buildpack release phase"}
	case strings.HasPrefix(reason, "insufficient resources"):
		return BuildError{"InsufficientResources", "Insufficient resources"}
	case strings.HasPrefix(reason, "found no compatible cell"):
		return BuildError{"NoCompatibleCell", "Found no compatible cell"}
	case reason == "unable to communicate to compatible cells":
		return stagingError(reason)
	case strings.Contains(reason, "exceeded "+StagingTimeout.String()+" timeout"):
		return BuildError{"StagingTimeExpired", "Staging time expired: staging took longer than " + StagingTimeout.String()}
	}
	return stagingError("staging failed")
}
