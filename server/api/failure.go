package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"cupola/server/control/autoscaling"
	"cupola/store"
	"cupola/store/cf"
)

// fault is how Cloud Controller shows a kind of error (its errors/v2.yml).
type fault struct {
	status, code int
	title        string
}

var faults = map[cf.Kind]fault{
	cf.InvalidAuthToken:      {401, 1000, "CF-InvalidAuthToken"},
	cf.MessageParseError:     {400, 1001, "CF-MessageParseError"},
	cf.BadRequest:            {400, 1004, "CF-BadRequest"},
	cf.NotFound:              {404, 10000, "CF-NotFound"},
	cf.Unknown:               {500, 10001, "UnknownError"},
	cf.NotAuthenticated:      {401, 10002, "CF-NotAuthenticated"},
	cf.NotAuthorized:         {403, 10003, "CF-NotAuthorized"},
	cf.InvalidRequest:        {400, 10004, "CF-InvalidRequest"},
	cf.BadQueryParameter:     {400, 10005, "CF-BadQueryParameter"},
	cf.UnprocessableEntity:   {422, 10008, "CF-UnprocessableEntity"},
	cf.ResourceNotFound:      {404, 10010, "CF-ResourceNotFound"},
	cf.Taken:                 {422, 10016, "CF-UniquenessError"},
	cf.ServiceUnavailable:    {503, 10015, "CF-ServiceUnavailable"},
	cf.OrgSuspended:          {403, 10017, "CF-OrgSuspended"},
	cf.RequestTooLarge:       {413, 1004, "CF-BadRequest"}, // Cloud Controller leaves it to what stands before it
	cf.RequestTimeout:        {408, 1004, "CF-BadRequest"}, // Cloud Controller leaves it to what stands before it
	cf.StagingInProgress:     {422, 170017, "CF-StagingInProgress"},
	cf.BitsInvalid:           {422, 160001, "CF-AppBitsUploadInvalid"},
	cf.BitsAlreadyUploaded:   {400, 150004, "CF-PackageBitsAlreadyUploaded"},
	cf.StackInvalid:          {422, 250004, "CF-StackValidationFailed"},
	cf.BuildpackNameTaken:    {422, 290000, "CF-BuildpackNameStackLifecycleTaken"},
	cf.BuildpackStacksDiffer: {422, 390011, "CF-BuildpackStacksDontMatch"},
	cf.BuildpackStackUnknown: {422, 390012, "CF-BuildpackStackDoesNotExist"},
	cf.BuildpackZipError:     {422, 390013, "CF-BuildpackZipError"},
	cf.BuildpackInvalid:      {400, 290003, "CF-BuildpackInvalid"},
	cf.BrokerNotRemovable:    {422, 270010, "CF-ServiceBrokerNotRemovable"},
	cf.FeatureDisabled:       {403, 330002, "CF-FeatureDisabled"},
	cf.BlobDamaged:           {500, 150007, "CF-BlobstoreError"},
	cf.DatabaseError:         {500, 10011, "CF-DatabaseError"},
	cf.DiskFull:              {507, 10011, "CF-DatabaseError"}, // Cloud Controller has no separate error for it; the status tells it apart

	cf.InvalidRelation:          {400, 1002, "CF-InvalidRelation"},
	cf.UnableToPerform:          {400, 10009, "CF-UnableToPerform"},
	cf.ServiceNotFound:          {404, 60004, "CF-ServiceInstanceNotFound"},
	cf.ServiceBusy:              {409, 60016, "CF-AsyncServiceInstanceOperationInProgress"},
	cf.ServiceBindingBusy:       {409, 90008, "CF-AsyncServiceBindingOperationInProgress"},
	cf.ServiceParametersUnknown: {400, 120004, "CF-ServiceFetchInstanceParametersNotSupported"},
	cf.BindingParametersUnknown: {400, 90007, "CF-ServiceFetchBindingParametersNotSupported"},
	cf.BrokerFailed:             {502, 10001, "CF-ServiceBrokerBadResponse"},
	cf.RouteAlreadyBound:        {422, 130008, "CF-ServiceInstanceAlreadyBoundToSameRoute"},
	cf.ServiceUnshareFailed:     {502, 390001, "CF-ServiceInstanceUnshareFailed"},
	cf.SpaceDeletionFailed:      {502, 290008, "CF-SpaceDeletionFailed"},
	cf.OrgDeletionFailed:        {502, 290010, "CF-OrganizationDeletionFailed"},
}

// failure is the answer to an error. What a client cannot act on is logged,
// and shown as Cloud Controller shows it: a 500 without its text.
func (s *Server) failure(r *http.Request, err error) *response {
	if wrong, ok := errors.AsType[autoscaling.Violations](err); ok {
		return &response{status: http.StatusBadRequest, body: wrong}
	}
	var many cf.Errors
	var one *cf.Error
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = cf.Errors{one}
	case errors.Is(err, context.Canceled), r.Context().Err() != nil: // of a client that left SQLite says other things
		return &response{status: 499, body: doc{}}
	default:
		s.Log.ErrorContext(r.Context(), "request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", err))
		many = cf.Errors{cmp.Or(store.Explain(err), cf.Errorf(cf.Unknown, "An unknown error occurred."))}
	}
	if strings.HasPrefix(r.URL.Path, policyServer) {
		return policyFailure(many[0])
	}
	if strings.HasPrefix(r.URL.Path, v2API) {
		return v2Failure(r.URL.Path, many[0])
	}
	if strings.HasPrefix(r.URL.Path, autoscaler) {
		return autoscalerFailure(many[0])
	}
	if strings.HasPrefix(r.URL.Path, routingAPI) {
		return routingFailure(many[0])
	}
	list := []cf.JobError{}
	for _, e := range many {
		list = append(list, jobError(e))
	}
	return &response{status: faults[many[0].Kind].status, body: doc{"errors": list}}
}

func jobError(e *cf.Error) cf.JobError {
	f := faults[e.Kind]
	return cf.JobError{Code: f.code, Title: f.title, Detail: e.Detail}
}
