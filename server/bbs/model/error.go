package model

import (
	"fmt"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
)

// Error is an error as clients of the BBS see it. They compare the type, and
// some the message too.
type Error struct {
	Type    int32
	Message string
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Proto is the error as a message; nil for nil.
func (e *Error) Proto() *bbspb.Error {
	if e == nil {
		return nil
	}
	return &bbspb.Error{Type: e.Type, Message: e.Message}
}

// Diego's types of error that cupola gives.
const (
	UnknownError           = 0
	InvalidRequest         = 4
	InvalidStateTransition = 9
	ResourceConflict       = 11
	ResourceExists         = 12
	ResourceNotFound       = 13
)

// Diego's errors, in its words.
var (
	ErrNotFound   = &Error{ResourceNotFound, "the requested resource could not be found"}
	ErrExists     = &Error{ResourceExists, "the requested resource already exists"}
	ErrBadRequest = &Error{InvalidRequest, "the request received is invalid"}
	ErrUnknown    = &Error{UnknownError, "the request failed for an unknown reason"}
)

// ErrOwned says that a client wants to change what is not the BBS' own: what
// Cloud Foundry's apps desire is derived from them.
func ErrOwned(what string) *Error {
	return &Error{ResourceConflict, what + " belongs to the apps of Cloud Foundry: it is changed by the v3 API, as by cf push and cf scale, and only shown here"}
}

// ErrTransition says that a Task's state cannot become another.
func ErrTransition(from, to lrp.TaskState) *Error {
	return &Error{InvalidStateTransition, fmt.Sprintf("Cannot transition from %s to %s", stateName(from), stateName(to))}
}

// stateName is Diego's name of a Task's state.
func stateName(s lrp.TaskState) string {
	switch s {
	case lrp.TaskPending:
		return "Pending"
	case lrp.TaskRunning:
		return "Running"
	case lrp.TaskCompleted:
		return "Completed"
	case lrp.TaskResolving:
		return "Resolving"
	}
	return "Invalid"
}
