/* cores.c - lets gRPC believe that there is one processor.
 *
 * Its timers are divided by processors, and each part wakes a thread once a second whether it
 * has a timer or not: on a large machine an agentd that only waits would be woken dozens of
 * times a second. One loop has no use for more than one part. What is defined here stands
 * before what libgpr has; both are its public functions. */
#include <grpc/support/cpu.h>

unsigned gpr_cpu_num_cores(void)
{
    return 1;
}

/* Of that one. */
unsigned gpr_cpu_current_cpu(void)
{
    return 0;
}
