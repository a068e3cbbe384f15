package api

import (
	"net/http"
	"strconv"
)

// askedInstance is the GUID of the service instance whose mails, points in time or server are asked for. The instance
// itself is asked outside of the transaction.
func askedInstance(c *call) (guid string, err error) {
	err = c.tx(false, func() error {
		i, err := findInstance(c)
		if err == nil {
			guid = i.GUID
		}
		return err
	})
	return guid, err
}

func listMails(c *call) (*response, error) {
	guid, err := askedInstance(c)
	if err != nil {
		return nil, err
	}
	all, err := c.s.Mails(c.Context(), guid)
	if err != nil {
		return nil, err
	}
	return ok(doc{"resources": all})
}

func showMail(c *call) (*response, error) {
	guid, err := askedInstance(c)
	if err != nil {
		return nil, err
	}
	content, err := c.s.Mail(c.Context(), guid, c.param("mail"))
	if err != nil {
		return nil, err
	}
	return &response{raw: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream") // a browser is not to show it as a page
		w.Header().Set("Content-Disposition", `attachment; filename="mail.eml"`)
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // a client that left needs none
	}}, nil
}
