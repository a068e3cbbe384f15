package deployment

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type eventsCmd struct {
	capi.Flags
	BeforeID   int    `help:"Only events before this one." placeholder:"ID"`
	Before     string `help:"Only events before this time, like 2026-01-31T12:00:00Z." placeholder:"TIME"`
	After      string `help:"Only events after this time." placeholder:"TIME"`
	Deployment string `help:"Only events of this deployment." short:"d" placeholder:"NAME"`
	Task       int    `help:"Only events of this task." placeholder:"NUMBER"`
	Instance   string `help:"Only events of this instance." placeholder:"GROUP/GUID"`
	EventUser  string `help:"Only what this user did." placeholder:"NAME"`
	Action     string `help:"Only this action, like 'update'." placeholder:"ACTION"`
	ObjectType string `help:"Only what was done to such objects: deployment, instance, disk or release." placeholder:"TYPE"`
	ObjectName string `help:"Only what was done to the object of this name." placeholder:"NAME"`
	JSON       bool   `help:"Print JSON." name:"json"`
}

// boshEvent is an event as the API shows it.
type boshEvent struct {
	ID         int       `json:"id"`
	ParentID   int       `json:"parent_id"` // 0: it began something
	Timestamp  time.Time `json:"timestamp"`
	User       string    `json:"user"`
	Action     string    `json:"action"`
	ObjectType string    `json:"object_type"`
	ObjectName string    `json:"object_name"`
	Task       int       `json:"task"` // 0: none
	Deployment string    `json:"deployment"`
	Instance   string    `json:"instance"`
	Error      string    `json:"error"`
}

// Run lists what was done to deployments, the newest first.
func (c *eventsCmd) Run(e *command.Env) error {
	query := url.Values{}
	for name, value := range map[string]string{"before_time": c.Before, "after_time": c.After, "deployment": c.Deployment, "instance": c.Instance,
		"user": c.EventUser, "action": c.Action, "object_type": c.ObjectType, "object_name": c.ObjectName, "before_id": orNone(c.BeforeID), "task": orNone(c.Task)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	heads := "ID\tTIME\tUSER\tACTION\tTYPE\tOBJECT\tTASK\tDEPLOYMENT\tINSTANCE\tERROR"
	return printList(e, &c.Flags, "/v1/deployment_events?"+query.Encode(), c.JSON, heads, func(w io.Writer, v boshEvent) {
		id := strconv.Itoa(v.ID)
		if v.ParentID != 0 {
			id += " <- " + strconv.Itoa(v.ParentID)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", id, command.When(v.Timestamp), orDash(v.User), v.Action, v.ObjectType, v.ObjectName,
			orDash(orNone(v.Task)), orDash(v.Deployment), orDash(v.Instance), orDash(oneLine(v.Error)))
	})
}

// orNone is a number as text; "" for 0.
func orNone(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
