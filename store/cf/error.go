package cf

import "fmt"

// Kind classes an Error; server/api maps it to Cloud Controller's status,
// code and title.
type Kind string

// The kinds of error. Their names are the titles of Cloud Controller's
// errors without "CF-" where it has one.
const (
	InvalidAuthToken      Kind = "InvalidAuthToken"
	NotAuthenticated      Kind = "NotAuthenticated"
	NotAuthorized         Kind = "NotAuthorized"
	MessageParseError     Kind = "MessageParseError"
	BadRequest            Kind = "BadRequest"
	BadQueryParameter     Kind = "BadQueryParameter"
	InvalidRequest        Kind = "InvalidRequest" // a query that cannot be read
	NotFound              Kind = "NotFound"       // an unknown path
	ResourceNotFound      Kind = "ResourceNotFound"
	UnprocessableEntity   Kind = "UnprocessableEntity"
	FeatureDisabled       Kind = "FeatureDisabled"
	Taken                 Kind = "UniquenessError"
	RequestTooLarge       Kind = "RequestEntityTooLarge"
	RequestTimeout        Kind = "RequestTimeout"
	StagingInProgress     Kind = "StagingInProgress"
	BitsInvalid           Kind = "AppBitsUploadInvalid"
	BitsAlreadyUploaded   Kind = "PackageBitsAlreadyUploaded"
	BuildpackNameTaken    Kind = "BuildpackNameStackLifecycleTaken"
	BuildpackStacksDiffer Kind = "BuildpackStacksDontMatch"
	BuildpackStackUnknown Kind = "BuildpackStackDoesNotExist"
	BuildpackZipError     Kind = "BuildpackZipError"
	BuildpackInvalid      Kind = "BuildpackInvalid"
	StackInvalid          Kind = "StackValidationFailed"
	Unknown               Kind = "UnknownError"
	OrgSuspended          Kind = "OrgSuspended"
	ServiceUnavailable    Kind = "ServiceUnavailable"
	BrokerNotRemovable    Kind = "ServiceBrokerNotRemovable"
	BlobDamaged           Kind = "BlobstoreError"
	DiskFull              Kind = "DiskFull"      // of the data directory
	DatabaseError         Kind = "DatabaseError" // the database is damaged

	InvalidRelation          Kind = "InvalidRelation"
	UnableToPerform          Kind = "UnableToPerform"
	ServiceNotFound          Kind = "ServiceInstanceNotFound"
	ServiceBusy              Kind = "AsyncServiceInstanceOperationInProgress"
	ServiceBindingBusy       Kind = "AsyncServiceBindingOperationInProgress"
	ServiceParametersUnknown Kind = "ServiceFetchInstanceParametersNotSupported"
	BindingParametersUnknown Kind = "ServiceFetchBindingParametersNotSupported"
	BrokerFailed             Kind = "ServiceBrokerBadResponse"
	RouteAlreadyBound        Kind = "ServiceInstanceAlreadyBoundToSameRoute"
	ServiceUnshareFailed     Kind = "ServiceInstanceUnshareFailed"
	SpaceDeletionFailed      Kind = "SpaceDeletionFailed"
	OrgDeletionFailed        Kind = "OrganizationDeletionFailed"
)

// Error is an error that a client can act on. Detail is for people, in Cloud
// Controller's words; clients match on it.
type Error struct {
	Kind   Kind
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Errorf returns an Error of the kind.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Unprocessable is Errorf of the commonest kind, Cloud Controller's 422.
func Unprocessable(format string, args ...any) *Error {
	return Errorf(UnprocessableEntity, format, args...)
}

// Errors are several Errors of one request: a client is shown all at once.
type Errors []*Error

func (es Errors) Error() string {
	s := ""
	for i, e := range es {
		if i > 0 {
			s += ", "
		}
		s += e.Detail
	}
	return s
}
