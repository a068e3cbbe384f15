package services

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// CreateBackup begins a backup of a service instance, by the job that is returned.
func CreateBackup(c *control.Session, i *cf.ServiceInstance) (*cf.DataBackup, *cf.Job, error) {
	data, err := dataOf(c, i)
	if err != nil {
		return nil, nil, err
	}
	b, err := beginBackup(c, data, cf.BackupRequested)
	if err != nil {
		return nil, nil, err
	}
	j, err := addJob(c, cf.JobBackupInstance, instances, i.GUID, cf.DataWork{Backup: b.GUID})
	if err != nil {
		return nil, nil, err
	}
	return b, j, backupEvent(c, audit.ServiceBackupCreate, i, b)
}

// Restoration asks to restore a backup.
type Restoration struct {
	Backup *struct {
		GUID string `json:"guid"`
	} `json:"backup"`
}

// Validate lists what is wrong with a request alone.
func (r Restoration) Validate() []string {
	return control.Must(r.Backup != nil && r.Backup.GUID != "", `Backup must be structured like this: "backup: {"guid": "valid-guid"}"`)
}

// RestoreBackup begins to replace the content of a service instance by a backup, of
// itself or of another one of the same offering, by the job that is returned. What is
// replaced is backed up first.
func RestoreBackup(c *control.Session, i *cf.ServiceInstance, r Restoration) (*cf.Job, error) {
	data, err := dataOf(c, i)
	if err != nil {
		return nil, err
	}
	b, _, err := FindBackup(c, r.Backup.GUID)
	switch {
	case err != nil:
		return nil, control.Unprocessable(err, "The backup could not be found: '%s'", r.Backup.GUID)
	case b.State != cf.BackupReady:
		return nil, cf.Unprocessable("The backup is not ready.")
	case b.Service != data.Service:
		return nil, cf.Unprocessable("The backup is of %s, but the service instance %s is of %s.", b.Service, i.Name, data.Service)
	}
	safety, err := beginBackup(c, data, cf.BackupBeforeRestore)
	if err != nil {
		return nil, err
	}
	i.LastOperation = cf.Begin(cf.OpUpdate, cf.OpInProgress, c.Tx.Now)
	i.LastOperation.Description = "restore of the backup " + b.GUID
	if err := store.ServiceInstances.Update(c.Tx, i); err != nil {
		return nil, err
	}
	if err := backupEvent(c, audit.ServiceBackupRestore, i, b); err != nil {
		return nil, err
	}
	return addJob(c, cf.JobRestoreInstance, instances, i.GUID, cf.DataWork{Backup: b.GUID, Safety: safety.GUID})
}

// dataOf is what the built-in broker has of a service instance that can be backed up now.
func dataOf(c *control.Session, i *cf.ServiceInstance) (*cf.DataInstance, error) {
	data, err := store.DataInstances.Get(c.Tx, i.GUID)
	if err != nil {
		return nil, control.Unprocessable(err, "Only service instances of the built-in broker can be backed up.")
	}
	if i.LastOperation.InProgress() || data.State != cf.DataReady {
		return nil, inProgress(i)
	}
	n, err := store.DataBackups.Count(c.Tx, store.Query{Where: map[string][]string{"service_instance_guids": {i.GUID}, "states": {cf.BackupProcessing}}})
	if err == nil && n > 0 {
		err = inProgress(i)
	}
	return data, err
}

func beginBackup(c *control.Session, data *cf.DataInstance, reason string) (*cf.DataBackup, error) {
	b := &cf.DataBackup{InstanceGUID: data.GUID, Service: data.Service, Reason: reason, State: cf.BackupProcessing}
	return b, store.DataBackups.Insert(c.Tx, b)
}

// FindBackup is a backup with its service instance, if the actor sees it and satisfies
// the rule in its space.
func FindBackup(c *control.Session, guid string) (*cf.DataBackup, *cf.ServiceInstance, error) {
	b, err := store.DataBackups.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, nil, err
	}
	i, err := FindInstance(c, b.InstanceGUID)
	return b, i, err
}

// DeleteBackup deletes a backup, unless it is being made.
func DeleteBackup(c *control.Session, guid string) error {
	b, i, err := FindBackup(c, guid)
	switch {
	case err != nil:
		return err
	case b.State != cf.BackupReady:
		return inProgress(i)
	}
	if err := store.DataBackups.Delete(c.Tx, b.GUID); err != nil {
		return err
	}
	return backupEvent(c, audit.ServiceBackupDelete, i, b)
}

// DownloadBackup is a backup to be downloaded, which it records.
func DownloadBackup(c *control.Session, guid string) (*cf.DataBackup, error) {
	b, i, err := FindBackup(c, guid)
	switch {
	case err != nil:
		return nil, err
	case b.State != cf.BackupReady:
		return nil, cf.Unprocessable("The backup is not ready.")
	}
	return b, backupEvent(c, audit.ServiceBackupDownload, i, b)
}

func backupEvent(c *control.Session, kind audit.Type, i *cf.ServiceInstance, b *cf.DataBackup) error {
	return instanceEvent(c, kind, i, audit.Data{"backup_guid": b.GUID})
}
