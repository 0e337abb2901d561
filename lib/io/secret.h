/* secret.h - keeps what a process knows from whoever else runs as the same user.
 *
 * A program that holds a password, a token or a private key leaves no core file and lets nobody
 * of its user read its memory or environment. A debugger cannot attach either, then: with
 * HOLDFAST_DUMPABLE=1 in the environment everything stays as the system has it. */
#ifndef HF_IO_SECRET_H
#define HF_IO_SECRET_H

/* First of all in main, before anything secret is read. What is started from here on may be
 * looked at again, but has a soft limit of no core file. Cannot fail: where the kernel refuses,
 * nothing is lost but the protection. */
void hf_secret_protect(void);

#endif
