package deployment

import (
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// boshView is a deployment as the API shows it.
type boshView struct {
	GUID      string    `json:"guid"`
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	UpdatedAt time.Time `json:"updated_at"`
	Manifest  string    `json:"manifest,omitempty"`
	Cloud     string    `json:"cloud_config,omitempty"` // none, latest or outdated
	Runtime   string    `json:"runtime_config,omitempty"`
}

type listCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the deployments.
func (c *listCmd) Run(e *command.Env) error {
	return printList(e, &c.Flags, "/v1/deployments", c.JSON, "NAME\tVERSION\tCLOUD CONFIG\tRUNTIME CONFIG\tDEPLOYED", func(w io.Writer, d boshView) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", d.Name, d.Version, d.Cloud, d.Runtime, command.When(d.UpdatedAt))
	})
}

// printList gets a list from the API and prints it as JSON, or as a table with row's
// lines below the heads.
func printList[T any](e *command.Env, flags *capi.Flags, path string, asJSON bool, heads string, row func(w io.Writer, v T)) error {
	var all []T
	if err := get(e, flags, path, &all); err != nil {
		return err
	}
	if asJSON {
		return command.WriteJSON(e.Out, all)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, heads)
	for _, v := range all {
		row(w, v)
	}
	return w.Flush()
}

// get logs in and gets a document of the API.
func get(e *command.Env, flags *capi.Flags, path string, out any) error {
	api, err := flags.Login(e.Ctx)
	if err != nil {
		return err
	}
	return api.Call(e.Ctx, "GET", path, nil, out)
}

// boshOne is the deployment that a command is about.
type boshOne struct {
	capi.Flags
	Deployment string `arg:"" help:"The deployment."`
}

func (c *boshOne) path() string { return "/v1/deployments/" + url.PathEscape(c.Deployment) }

type inspectCmd struct{ boshOne }

// Run prints the manifest of a deployment.
func (c *inspectCmd) Run(e *command.Env) error {
	var d boshView
	if err := get(e, &c.Flags, c.path(), &d); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "# %s, version %d, deployed %s\n%s", d.Name, d.Version, command.When(d.UpdatedAt), d.Manifest)
	return err
}

type variablesCmd struct {
	boshOne
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the variables of a deployment, without their values.
func (c *variablesCmd) Run(e *command.Env) error {
	type variable struct {
		Name      string    `json:"name"`
		Type      string    `json:"type"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	return printList(e, &c.Flags, c.path()+"/variables", c.JSON, "VARIABLE\tTYPE\tSINCE", func(w io.Writer, v variable) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Type, command.When(v.UpdatedAt))
	})
}
