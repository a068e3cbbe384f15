package osb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
)

// The names of errors: Cloud Controller's classes, which it shows as titles.
const (
	Timeout         = "HttpClientTimeout"
	BrokerTimeout   = "ServiceBrokerApiTimeout"
	Unreachable     = "ServiceBrokerApiUnreachable"
	RequestFailed   = "HttpRequestError"
	Unauthenticated = "ServiceBrokerApiAuthenticationFailed"
	Rejected        = "ServiceBrokerRequestRejected"
	BadResponse     = "ServiceBrokerBadResponse"
	Malformed       = "ServiceBrokerResponseMalformed"
	Conflict        = "ServiceBrokerConflict"
	AsyncRequired   = "AsyncRequired"
	Concurrency     = "ConcurrencyError"
	AppRequired     = "AppRequired"
	VersionConflict = "MaintenanceInfoConflict"
	invalidDrain    = "ServiceBrokerInvalidSyslogDrainUrl"
	invalidVolumes  = "ServiceBrokerInvalidVolumeMounts"
)

// Error is what went wrong with a request, in Cloud Controller's words.
type Error struct {
	Name   string
	Detail string
	Status int  // the broker's answer; 0 for none
	Sent   bool // the broker may have got the request
}

func (e *Error) Error() string { return e.Detail }

// Line is the status that the broker answered, as a line shows it: "404 Not
// Found".
func (e *Error) Line() string { return statusLine(e.Status) }

func statusLine(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// Orphan reports whether a create that ended with err may have left something at
// the broker that has to be removed: the table of the specification, and a
// connection that broke after the request was sent.
func Orphan(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case 0:
		return e.Sent
	case http.StatusOK:
		return e.Name == invalidDrain || e.Name == invalidVolumes // as Cloud Controller does
	}
	return e.Status > 200 && e.Status < 300 || e.Status >= 500
}

// Is reports whether err is an Error of the name.
func Is(err error, name string) bool {
	var e *Error
	return errors.As(err, &e) && e.Name == name
}

// failed is the error of a request without an answer.
func failed(err error, r request, sent bool) *Error {
	e := &Error{Sent: sent}
	var network net.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		e.Name, e.Detail = Timeout, "The request to the service broker timed out"
	case errors.As(err, &dns), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		e.Name, e.Detail = Unreachable, "The service broker could not be reached"
	default:
		e.Name, e.Detail = RequestFailed, fmt.Sprintf("The request to the service broker failed: %s %s: %v", r.method, r.path, err)
	}
	return e
}

// maxDetail is how much of a broker's words is shown; bytes. Cloud Controller
// cuts what is longer than the first to the second.
const (
	maxDetail = 1 << 14
	cutDetail = 1 << 13
)

func truncate(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	return strings.ToValidUTF8(s[:cutDetail], "") + "...This message has been truncated due to size. To read the full message, check the broker's logs"
}

// fault is an error of an answer.
func (a *answer) fault(name, format string, args ...any) *Error {
	return &Error{Name: name, Status: a.status, Sent: true, Detail: truncate(fmt.Sprintf(format, args...))}
}

// malformed is the error of an answer that is not what it should be.
func (a *answer) malformed(format string, args ...any) *Error {
	return a.fault(Malformed, "The service broker returned an invalid response: "+format, args...)
}

// described is the error of an answer with the broker's description, or with
// the words for none, which may show the answer.
func (a *answer) described(name, without string) *Error {
	if d, ok := a.object["description"]; ok {
		return a.fault(name, "Service broker error: %s", plain(d))
	}
	return a.fault(name, "%s", without)
}

func (a *answer) bad() *Error { return a.described(BadResponse, a.badText()) }

func (a *answer) badText() string {
	return fmt.Sprintf("The service broker returned an invalid response. Status Code: %s, Body: %s", a.line(), a.body)
}

// line is the status as a line shows it.
func (a *answer) line() string { return statusLine(a.status) }

// common is the error that answers to all requests have in common; nil for
// none.
func (a *answer) common() error {
	switch s := a.status; {
	case s == http.StatusUnauthorized:
		return a.fault(Unauthenticated, "Authentication with the service broker failed. Double-check that the username and password are correct.")
	case s == http.StatusRequestTimeout:
		return a.fault(BrokerTimeout, "The request to the service broker timed out")
	case s == http.StatusConflict, s == http.StatusGone, s == http.StatusUnprocessableEntity:
		return nil
	case s >= 400 && s < 500:
		return a.described(Rejected, a.rejectedText())
	case s >= 500:
		return a.bad()
	}
	return nil
}

func (a *answer) rejectedText() string {
	return fmt.Sprintf("The service broker rejected the request. Status Code: %s, Body: %s", a.line(), a.body)
}

// unprocessable is the error of a 422: of those that the request knows, or
// another.
func (a *answer) unprocessable(other *Error, known ...string) error {
	code := text(a.object["error"])
	for _, k := range known {
		if code != k {
			continue
		}
		switch k {
		case AsyncRequired:
			return a.fault(k, "This service plan requires client support for asynchronous service operations.")
		case Concurrency:
			return a.fault(k, "The service broker could not perform this operation in parallel with other running operations")
		case VersionConflict:
			return a.versionConflict()
		}
	}
	if code == "RequiresApp" && other.Name == BadResponse && slices.Contains(known, code) {
		return a.fault(AppRequired, "This service supports generation of credentials through binding an application only.")
	}
	return other
}

func (a *answer) versionConflict() error {
	if d := text(a.object["description"]); strings.TrimSpace(d) != "" {
		return a.fault(VersionConflict, "Service broker error: %s", d)
	}
	return a.fault(VersionConflict, "The service broker did not provide a reason for this conflict, please ensure the "+
		"catalog is up to date and you are providing a version supported by this service plan")
}
