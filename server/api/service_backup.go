package api

import (
	"net/http"
	"strconv"

	"cupola/server/control/services"
	"cupola/store/cf"
)

func viewBackup(c *call, b *cf.DataBackup) doc {
	self := "/v1/service_backups/" + b.GUID
	return with(resource(b.Resource), doc{"state": b.State, "reason": b.Reason, "service": b.Service, "version": b.Version, "size": b.Size,
		"relationships": doc{"service_instance": toOne(b.InstanceGUID)},
		"links": doc{"self": c.link("%s", self), "download": c.link("%s/download", self), "service_instance": c.link("/v3/service_instances/%s", b.InstanceGUID),
			"restore": c.action(http.MethodPost, "/v1/service_instances/%s/actions/restore", b.InstanceGUID)}})
}

// createBackup answers with the backup, and the job that makes it.
func createBackup(c *call) (*response, error) {
	i, err := findInstance(c)
	if err != nil {
		return nil, err
	}
	if err := c.s.CheckBackup(c.Tx, i.GUID, false); err != nil {
		return nil, err
	}
	b, j, err := services.CreateBackup(c.Session, i)
	if err != nil {
		return nil, err
	}
	res := underWay(c, j)
	res.body = viewBackup(c, b)
	return res, nil
}

func restoreBackup(c *call) (*response, error) {
	i, err := findInstance(c)
	if err != nil {
		return nil, err
	}
	var req services.Restoration
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := c.s.CheckBackup(c.Tx, i.GUID, true); err != nil {
		return nil, err
	}
	j, err := services.RestoreBackup(c.Session, i, req)
	return underWay(c, j), err
}

// showPoints shows the points in time that a service instance can be restored to. They are read outside of the
// transaction.
func showPoints(c *call) (*response, error) {
	guid, err := askedInstance(c)
	if err != nil {
		return nil, err
	}
	points, err := c.s.Points(c.Context(), guid)
	if err != nil {
		return nil, err
	}
	return ok(points)
}

// showDataServer shows the version of a service instance's server, and whether it requires TLS. The server is asked outside of the
// transaction.
func showDataServer(c *call) (*response, error) {
	guid, err := askedInstance(c)
	if err != nil {
		return nil, err
	}
	server, err := c.s.DataServer(c.Context(), guid)
	if err != nil {
		return nil, err
	}
	return ok(server)
}

var findBackup finder[cf.DataBackup] = func(c *call) (*cf.DataBackup, error) {
	b, _, err := services.FindBackup(c.Session, c.guid())
	return b, err
}

func deleteBackup(c *call) (*response, error) {
	if err := services.DeleteBackup(c.Session, c.guid()); err != nil {
		return nil, err
	}
	return noContent()
}

func downloadBackup(c *call) (*response, error) {
	b, err := services.DownloadBackup(c.Session, c.guid())
	if err != nil {
		return nil, err
	}
	return &response{raw: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Length", strconv.FormatInt(b.Size, 10))
		w.Header().Set("Content-Disposition", `attachment; filename="backup_`+b.GUID+"."+c.s.BackupEnding(b.Service)+`"`)
		if err := c.s.ReadBackup(b, w); err != nil && c.Context().Err() == nil {
			c.s.Log.ErrorContext(c.Context(), "backup was not downloaded", "backup_guid", b.GUID, "err", err)
			panic(http.ErrAbortHandler) // so that the client does not take it for whole
		}
	}}, nil
}
