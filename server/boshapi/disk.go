package boshapi

import (
	"fmt"
	"net/http"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// listDisks lists the orphaned disks.
func listDisks(c *call) (*answer, error) {
	rows, err := store.BOSHDisks.All(c.tx)
	all := []doc{}
	for _, d := range rows {
		if !d.OrphanedAt.IsZero() {
			all = append(all, viewDisk(d))
		}
	}
	return &answer{body: all}, err
}

func viewDisk(d *cf.BOSHDisk) doc {
	return doc{"disk_cid": d.GUID, "size": d.SizeMB, "az": d.AZ, "deployment_name": d.DeploymentName, "instance_name": fmt.Sprintf("%s/%d", d.Group, d.Index),
		"cloud_properties": doc{}, "orphaned_at": d.OrphanedAt.UTC().Format("2006-01-02 15:04:05 UTC")}
}

// disk is that of {disk}.
func (c *call) disk() (*cf.BOSHDisk, error) {
	d, err := store.BOSHDisks.Get(c.tx, c.param("disk"))
	if store.IsNotFound(err) {
		return nil, &refusal{http.StatusNotFound, 100002, "Disk '" + c.param("disk") + "' not found"}
	}
	return d, err
}

// dropDisk deletes an orphaned disk, or orphans a disk of a stopped instance.
func dropDisk(c *call) (*answer, error) {
	d, err := c.disk()
	if err != nil {
		return nil, err
	}
	if c.flag("orphan") {
		if err := director.OrphanDisk(c.tx, c.user(), d); err != nil {
			return nil, err
		}
		return c.changedDisk(d, "disk "+d.GUID+" orphaned")
	}
	if err := director.DeleteDisk(c.tx, c.user(), d); err != nil {
		return nil, err
	}
	return c.changedDisk(d, "disk "+d.GUID+" deleted")
}

func attachDisk(c *call) (*answer, error) {
	d, err := c.disk()
	if err != nil {
		return nil, err
	}
	of, err := store.BOSHDeployments.First(c.tx, store.Query{Where: map[string][]string{"names": {c.query("deployment")}}})
	if store.IsNotFound(err) {
		return nil, &refusal{http.StatusNotFound, 70000, "Deployment '" + c.query("deployment") + "' doesn't exist"}
	}
	if err != nil {
		return nil, err
	}
	group, index, err := c.named(of, c.query("job"), c.query("instance_id"))
	switch {
	case err != nil:
		return nil, err
	case index == nil:
		return nil, &refusal{http.StatusBadRequest, 520001, "Name one instance, like nats/0"}
	}
	if err := director.AttachDisk(c.tx, c.user(), d, of.Name, group, *index); err != nil {
		return nil, err
	}
	return c.changedDisk(d, fmt.Sprintf("attached disk '%s' to '%s/%d' in deployment '%s'", d.GUID, group, *index, of.Name))
}

func (c *call) changedDisk(d *cf.BOSHDisk, result string) (*answer, error) {
	return c.ended(director.Ended{Deployment: d.DeploymentName, Kind: director.ChangeDisk, Result: result})
}
