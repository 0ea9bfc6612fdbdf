#!/bin/sh
# A job for `mesos-py torque`, with options that PBS knows:
#
#   mesos-py local --agents 2 --port 5060 &
#   mesos-py torque up --state-dir pbs &
#   . pbs/env.sh
#   qsub examples/pbs_job.sh
#   qstat
#
#PBS -N primes
#PBS -l nodes=1:ppn=1,mem=100mb,walltime=00:05:00

cd "$PBS_O_WORKDIR" || exit 1
echo "job $PBS_JOBID on node $SLURMD_NODENAME"
seq 2 2000 | factor | awk 'NF == 2 { primes++ } END { print primes, "primes" }'
