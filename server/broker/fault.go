package broker

import (
	"errors"
	"fmt"

	"cupola/server/osb"
	"cupola/store/cf"
)

// fault is how a task failed: as the job shows it, and as the last operation
// describes it.
type fault struct {
	shown       cf.JobError
	description string
}

func (f fault) Error() string { return f.shown.Detail }

func asFault(err error) (fault, bool) { return errors.AsType[fault](err) }

// The codes of Cloud Controller's errors (its errors/v2.yml).
const (
	codeUnknown          = 10001
	codeUnable           = 10009
	codeNotFound         = 10010
	codeInstanceBusy     = 60016
	codeBindingInvalid   = 90001
	codeBrokerInvalid    = 270001
	codeCatalogInvalid   = 270012
	codeRequestRejected  = 270020
	codeRequestMalformed = 270021
	codeJobTimeout       = 290006
	codeBrokerGone       = 270011
)

func newFault(code int, title, format string, args ...any) fault {
	detail := fmt.Sprintf(format, args...)
	return fault{cf.JobError{Code: code, Title: "CF-" + title, Detail: detail}, detail}
}

// unable is Cloud Controller's UnableToPerform.
func unable(verb, why string) fault {
	f := newFault(codeUnable, "UnableToPerform", "%s could not be completed: %s", verb, why)
	f.description = why
	return f
}

func timedOut(verb string) fault {
	f := newFault(codeJobTimeout, "JobTimeout", "The job execution has timed out.")
	f.description = fmt.Sprintf("Service Broker failed to %s within the required time.", verb)
	return f
}

// sendFault is the fault of a request that failed.
func sendFault(s *step, err error) fault {
	if f, ok := asFault(err); ok {
		return f
	}
	return unable(s.task.words().send, err.Error())
}

// plainFault is an error of a broker as it is, under Cloud Controller's title.
func plainFault(err error) fault {
	if e, ok := errors.AsType[*osb.Error](err); ok {
		return newFault(codeUnknown, e.Name, "%s", e.Detail)
	}
	return newFault(codeUnknown, "UnknownError", "%s", err)
}

// fetchError is an error of fetching what a broker says it has made.
type fetchError struct{ error }
