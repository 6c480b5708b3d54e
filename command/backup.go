package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/makegood-dev/makegood/internal/backup"
)

func newBackup() *cobra.Command {
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Copy the data folder of an engine, while the engine works",
		Long: `Copy the data folder of an engine into FOLDER, which must not be there or be empty: the jobs as they are at one moment, their
large payloads, and a list of all files with their hashes. The engine goes on meanwhile. The copy is checked: SQLite's
integrity check, and the number of jobs counted two ways.

The copy holds what jobs hold, inputs and outputs, and the key of the payloads: keep it as you keep the folder.

Exit status: 0 it is copied and checked; 1 bad usage, no file was written; 3 it failed, and FOLDER is no backup.`,
		Example: "  makegood backup --data ./data ./backups/monday\n  makegood backup --data ./data ./backups/monday --json",
		Args:    one("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := backup.Make(cmd.Context(), data, args[0], time.Now())
			if err != nil {
				return exit(codeOf(err), err)
			}
			return printBackup(cmd, l, asJSON, "backed up to "+args[0])
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "`folder` of the engine, as serve and dev have it (required)")
	return withBackupFlags(cmd, &asJSON)
}

func newRestore() *cobra.Command {
	var data string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore BACKUP",
		Short: "Make a data folder of a backup",
		Long: `Make a data folder of a backup. It overwrites no file: --data must name a folder that is not there, or is empty, and none on
which an engine runs. Every file is compared with the list of the backup, and the jobs are counted, before the folder has a store.

An engine on it goes on from the moment of the backup: work done since is done again, under the same idempotency keys, and
jobs submitted since are not there. End the engine that ran before, and the agents outside its process, before you begin; docs/production.md
says what else to look at.

Exit status: 0 it is restored; 1 bad usage, no file was written; 3 it failed, and no engine begins on the folder.`,
		Example: "  makegood restore ./backups/monday --data ./data",
		Args:    one("BACKUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := backup.Restore(cmd.Context(), args[0], data)
			if err != nil {
				return exit(codeOf(err), err)
			}
			return printBackup(cmd, l, asJSON, "restored to "+data)
		},
	}
	cmd.Flags().StringVar(&data, "data", "", "`folder` that is made (required)")
	return withBackupFlags(cmd, &asJSON)
}

func withBackupFlags(cmd *cobra.Command, asJSON *bool) *cobra.Command {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON on standard output")
	require(cmd, "data")
	completeFolder(cmd, "data")
	return cmd
}

func codeOf(err error) int {
	if usage := (*backup.UsageError)(nil); errors.As(err, &usage) {
		return codeUsage
	}
	return codeFailed
}

func printBackup(cmd *cobra.Command, l backup.List, asJSON bool, did string) error {
	if asJSON {
		return printJSON(cmd.OutOrStdout(), map[string]any{"at": l.At, "jobs": l.Jobs, "unfinished": l.Unfinished, "files": len(l.Files), "bytes": l.Bytes})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %d of them unfinished, %s, %d bytes, as of %s\n", did, count(int(l.Jobs), "job"), l.Unfinished, count(len(l.Files), "file"), l.Bytes, l.At.Format(time.RFC3339))
	return nil
}
