package api

import (
	"fmt"
	"maps"

	"cupola/server/control/message"
	"cupola/server/control/services"
)

// Shorthands for the tables of messages.
type (
	checks = message.Message
	check  = message.Check
)

// requestMessages are what Cloud Controller checks of the bodies of requests, by the
// pattern of their route; each is one of the classes in its app/messages.
var requestMessages = gather(appMessages, orgMessages, routeMessages, serviceMessages, stackMessages)

func gather(tables ...map[string]checks) map[string]checks {
	all := map[string]checks{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// messageOf returns the checks of a request's body; nil for a route that Cloud
// Controller does not have. A request that copies what "source_guid" names has
// different checks.
func messageOf(c *call, v any) checks {
	switch v.(type) { // of one route
	case *services.ManagedChange:
		return managedChange
	case *services.UserProvidedChange:
		return userProvidedChange
	}
	pattern := c.Request.Pattern
	if c.Request.URL.Query().Get("source_guid") != "" {
		if m, ok := requestMessages[pattern+"?source_guid"]; ok {
			return m
		}
	}
	return requestMessages[pattern]
}

// Bounds of numbers: CC: app/messages/base_message.rb.
const (
	maxDBInt    = 1<<31 - 1
	maxDBBigint = 1<<63 - 1
)

// labelsOnly is a request that changes labels and annotations alone.
var labelsOnly = checks{message.Metadata, message.Keys("metadata")}

// toManyMessage names several things: CC: to_many_relationship_message.rb.
var toManyMessage = checks{
	message.Keys("data"),
	message.Attribute("data", message.Present, message.Array),
	guidStrings,
}

// toOneMessage names one thing or, with null, none.
func toOneMessage(data ...check) checks {
	return append(checks{message.Keys("data")}, data...)
}

// guidStrings is CC: ToManyRelationshipMessage::DataParamGUIDValidator.
func guidStrings(r *message.Request) {
	list, _ := r.Get("data").([]any)
	for i, v := range list {
		o, _ := v.(*message.Object)
		if _, ok := o.Get("guid").(string); !ok {
			r.Base(fmt.Sprintf("Invalid data type: Data[%d] guid should be a string.", i))
		}
	}
}

// isWhole reports whether a value is a whole number within bounds.
func isWhole(v any, least, most int64) bool {
	n, ok := message.Whole(v)
	return ok && n >= least && n <= most
}

func wholeOf(v any) int64 {
	n, _ := message.Whole(v)
	return n
}

// segmentData is the data of a relationship to an isolation segment, or of a route's
// move: CC: orgs_default_iso_seg_update_message.rb.
func segmentData(r *message.Request) {
	v := r.Get("data")
	if v == nil {
		return
	}
	if message.Blank(v) {
		r.Add("data", "can't be blank")
	}
	o, ok := v.(*message.Object)
	if !ok {
		r.Add("data", "must be an object")
		return
	}
	oneGUID(r, o)
}

// oneGUID wants an object to have a guid and nothing else.
func oneGUID(r *message.Request, o *message.Object) {
	if len(o.Keys) != 1 {
		r.Add("data", "can only accept one key")
	}
	if !o.Has("guid") {
		r.Add("data", "can only accept key 'guid'")
	}
	if guid := o.Get("guid"); guid != nil && guid != false {
		if _, ok := guid.(string); !ok {
			r.Add("data", message.Text(guid)+" must be a string")
		}
	}
}
