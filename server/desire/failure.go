package desire

import (
	"strings"

	"cupola/runtime/lrp"
)

// BuildError is why a build failed, in Cloud Controller's words.
type BuildError struct {
	ID     string // "NoAppDetectedError"
	Detail string
	Cause  string // for the app's log, where Detail does not name it
}

// Error is the text that a build shows; the cf CLI looks for the ID in it.
func (e BuildError) Error() string { return e.ID + " - " + e.Detail }

// stagingPrefix begins the Detail of a StagingError (CC: errors/v2.yml).
const stagingPrefix = "Staging error: "

func stagingError(detail string) BuildError {
	return BuildError{ID: "StagingError", Detail: stagingPrefix + detail}
}

// stagingFailed is all that Cloud Controller says of a failure that it has no name
// for.
const stagingFailed = "staging failed"

// The errors of a staging that Cloud Controller finds in what the container left
// (staging_completion_handler.rb).
var (
	ErrNoDroplet      = stagingError("no droplet")
	ErrNoStartCommand = stagingError("Start command not specified")
)

// StackNotFound is the error of a build whose stack is gone.
func StackNotFound(stack string) BuildError {
	return stagingError("The stack could not be found: " + stack)
}

// CannotStage is the error of a build whose container never starts.
func CannotStage(why string) BuildError { return stagingError(why) }

// StagingFailure is the error of a build whose task failed for the reason: the
// rules of Cloud Controller's failure reason sanitizer. The builder's exit
// codes 225 and 226 have no separate texts there either: the cause of those is
// in the log of the container, and any other in Cause.
func StagingFailure(reason string) BuildError {
	e := namedFailure(reason)
	if !exited(reason) && !lrp.IsLogged(reason) {
		e.Cause = reason
	}
	return e
}

func namedFailure(reason string) BuildError {
	named := func(id, detail string) BuildError { return BuildError{ID: id, Detail: detail} }
	switch {
	case strings.HasSuffix(reason, "222"):
		return named("NoAppDetectedError", "An app was not successfully detected by any available buildpack")
	case strings.HasSuffix(reason, "223"):
		return named("BuildpackCompileFailed", "App staging failed in the buildpack compile phase")
	case strings.HasSuffix(reason, "224"):
		return named("BuildpackReleaseFailed", "App staging failed in the buildpack release phase")
	case cnbFailure(reason) != "":
		return named(cnbFailures[cnbFailure(reason)].id, cnbFailures[cnbFailure(reason)].detail)
	case strings.HasPrefix(reason, "insufficient resources"):
		return named("InsufficientResources", "Insufficient resources")
	case strings.HasPrefix(reason, "found no compatible cell"):
		return named("NoCompatibleCell", "Found no compatible cell")
	case reason == "unable to communicate to compatible cells":
		return stagingError(reason)
	case strings.Contains(reason, "exceeded "+StagingTimeout.String()+" timeout"):
		return named("StagingTimeExpired", "Staging time expired: staging took longer than "+StagingTimeout.String())
	}
	return stagingError(stagingFailed)
}

// cnbFailures are the errors of Cloud Native Buildpacks by the exit codes of their builder
// (CC: errors/v2.yml, 430001 to 430007).
var cnbFailures = map[string]struct{ id, detail string }{
	"231": {"CNBGenericBuildFailed", "cnb: generic build failure"},
	"232": {"CNBDownloadBuildpackFailed", "cnb: downloading buildpacks failed: This may be caused by a wrong url, invalid buildpack or invalid credentials. Check the staging logs for more details."},
	"233": {"CNBDetectFailed", "cnb: detecting failed"},
	"234": {"CNBBuildFailed", "cnb: building failed"},
	"235": {"CNBExportFailed", "cnb: exporting failed"},
	"236": {"CNBLaunchFailed", "cnb: launching failed"},
	"237": {"CNBRestoreFailed", "cnb: restore failed"},
}

// cnbFailure is the exit code of a reason that cnbFailures has; "" for another.
func cnbFailure(reason string) string {
	code := reason[max(0, len(reason)-3):]
	if _, ok := cnbFailures[code]; ok {
		return code
	}
	return ""
}

// BuildpackNotDownloaded is the error of a build whose buildpack is an image that cannot be pulled.
func BuildpackNotDownloaded() BuildError { return namedFailure("232") }

// exited reports whether a task's reason is a process' exit code alone. Why it
// exited with that, its container's log says.
func exited(reason string) bool {
	_, code, ok := strings.Cut(reason, "Exited with status ")
	return ok && code != "" && strings.Trim(code, "0123456789") == ""
}

// FailureMessage is what Cloud Controller logs of a failed build, by the error that
// the build shows and the reason of its task: that is the reason where it keeps
// it, and the detail of a StagingError.
func FailureMessage(shown, reason string) string {
	id, detail, _ := strings.Cut(shown, " - ")
	switch id {
	case "InsufficientResources", "NoCompatibleCell":
		return reason
	case "StagingError":
		return strings.TrimPrefix(detail, stagingPrefix)
	}
	return stagingFailed
}
